import { useQueryClient } from "@tanstack/react-query";
import { useTranslation } from "react-i18next";
import { deleteSink, pauseSink, resumeSink, type SinkOut } from "@/api";
import { ConfirmDialog } from "@/parts";
import type { SinkAct } from "./index";
import { sinkHolding } from "./recipes";

/** Asks before a sink is paused, resumed or deleted. */
export function SinkDialogs({ chosen, onClose }: { chosen: { sink: Pick<SinkOut, "name">; act: SinkAct } | null; onClose: () => void }) {
  const { t } = useTranslation("sinks");
  const queries = useQueryClient();
  const name = chosen?.sink.name ?? "";
  const path = `/api/v1/sinks/${name}`;
  const done = () => queries.invalidateQueries({ queryKey: ["sinks"] });
  const verb = chosen?.act === "resume" ? "resume" : "pause";
  return (
    <>
      <ConfirmDialog
        opened={chosen?.act === "pause" || chosen?.act === "resume"}
        onClose={onClose}
        title={t(`${verb}.title`, { name })}
        confirm={t(`${verb}.confirm`)}
        needs="operator"
        note={{ label: t("note") }}
        recipe={sinkHolding(name, verb)}
        onConfirm={async (text) => {
          const note = text ? { note: text } : {};
          await (verb === "pause" ? pauseSink(name, note) : resumeSink(name, note));
          await done();
        }}
      >
        {t(`${verb}.explain`)}
      </ConfirmDialog>
      <ConfirmDialog
        opened={chosen?.act === "delete"}
        onClose={onClose}
        title={t("delete.title", { name })}
        confirm={t("delete.confirm")}
        needs="admin"
        isDangerous
        recipe={{ method: "DELETE", path, cli: `horai sinks delete ${name}` }}
        onConfirm={async () => {
          await deleteSink(name);
          await done();
        }}
      >
        {t("delete.explain")}
      </ConfirmDialog>
    </>
  );
}
