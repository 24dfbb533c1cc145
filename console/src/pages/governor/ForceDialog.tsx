import { TextInput } from "@mantine/core";
import { useQueryClient } from "@tanstack/react-query";
import { useState } from "react";
import { useTranslation } from "react-i18next";
import { type ModeIn, postMode } from "@/api";
import { ConfirmDialog } from "@/parts";

export interface Forced {
  mode: ModeIn["mode"];
  state: ModeIn["state"];
}

/** Forces a mode on or off for a time, or returns it to its rule. */
export function ForceDialog({ forced, onClose }: { forced: Forced | null; onClose: () => void }) {
  const { t } = useTranslation("governor");
  const queries = useQueryClient();
  const [lasts, setLasts] = useState("30m");
  const state = forced?.state ?? "ON";
  const isTimed = state !== "AUTO";
  const body = { ...(forced ?? { mode: "SHED_LOW" as const, state }), ...(isTimed && lasts && { expiresIn: lasts }) };
  return (
    <ConfirmDialog
      opened={forced !== null}
      onClose={onClose}
      title={t(`force.${state}.title`, { mode: forced?.mode })}
      confirm={t(`force.${state}.act`)}
      needs="platform"
      isDangerous={state === "ON"}
      note={{ label: t("note") }}
      recipe={{
        method: "POST",
        path: "/api/v1/scheduler/mode",
        body,
        cli: `horai governor mode ${forced?.mode} ${state.toLowerCase()}${isTimed && lasts ? ` --for ${lasts}` : ""}`,
      }}
      onConfirm={async (note) => {
        await postMode({ ...body, ...(note && { note }) });
        await queries.invalidateQueries({ queryKey: ["governor"] });
      }}
    >
      {t(`force.${state}.explain`)}
      {isTimed && (
        <TextInput mt="md" label={t("lasts")} description={t("lastsHint")} value={lasts} onChange={(event) => setLasts(event.currentTarget.value)} />
      )}
    </ConfirmDialog>
  );
}
