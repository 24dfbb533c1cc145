import { Group, Stack, Text, TextInput } from "@mantine/core";
import { useQueryClient } from "@tanstack/react-query";
import { useState } from "react";
import { useTranslation } from "react-i18next";
import { freezeWork, type GovernorOut, type ManualHoldOut, pauseDispatch, resumeDispatch, unfreezeWork } from "@/api";
import { seesPlatform, useSession } from "@/live";
import { Act, ConfirmDialog, Panel, type Recipe, When } from "@/parts";

const KINDS = ["dispatch", "low-priority", "backfill"] as const;
type Kind = (typeof KINDS)[number];

/** A hold to make, or to release. */
export interface AskedHold {
  kind: Kind;
  isHeld: boolean;
}

/** What operators hold by hand: all dispatch, low-priority work, and the entry of backfills. */
export function Holds({ governor }: { governor: GovernorOut }) {
  const { t } = useTranslation("governor");
  const scope = seesPlatform(useSession().data) ? "platform" : "tenant";
  const [asked, ask] = useState<AskedHold | null>(null);
  return (
    <Panel title={t("holds.title")}>
      <Stack gap="sm">
        {KINDS.map((kind) => {
          const holds = governor.holds.filter((hold) => hold.what === kind);
          const isHeld = holds.some((hold) => hold.scope === scope);
          return (
            <Group key={kind} justify="space-between" wrap="nowrap" align="flex-start">
              <div>
                <Text size="sm" fw={600}>
                  {t(`holds.kind.${kind}`)}
                </Text>
                {holds.length === 0 && (
                  <Text size="xs" c="dimmed">
                    {t("holds.none")}
                  </Text>
                )}
                {holds.map((hold) => (
                  <Held key={hold.scope} hold={hold} />
                ))}
              </div>
              <Act needs="holds" size="xs" variant="default" onClick={() => ask({ kind, isHeld })}>
                {t(`holds.${isHeld ? "release" : "hold"}.${kind}`)}
              </Act>
            </Group>
          );
        })}
      </Stack>
      <HoldQuestion asked={asked} onClose={() => ask(null)} />
    </Panel>
  );
}

function Held({ hold }: { hold: ManualHoldOut }) {
  const { t } = useTranslation("governor");
  return (
    <Text size="xs">
      {t(`holds.by.${hold.scope}`, { actor: hold.actor ?? "" })} <When at={hold.since} as="relative" />
      {hold.expiresAt !== null && (
        <>
          {" · "}
          {t("modes.until")} <When at={hold.expiresAt} />
        </>
      )}
      {hold.note && ` · ${hold.note}`}
    </Text>
  );
}

/** Asks before work is held by hand, or released. */
export function HoldQuestion({ asked, onClose }: { asked: AskedHold | null; onClose: () => void }) {
  const { t } = useTranslation("governor");
  const queries = useQueryClient();
  const [lasts, setLasts] = useState("1h");
  const { kind, isHeld } = asked ?? { kind: "dispatch" as const, isHeld: false };
  const isTimed = !isHeld && kind !== "dispatch";
  const time = isTimed && lasts ? lasts : undefined;
  return (
    <ConfirmDialog
      opened={asked !== null}
      onClose={onClose}
      title={`${t(`holds.${isHeld ? "release" : "hold"}.${kind}`)}?`}
      confirm={t(`holds.${isHeld ? "release" : "hold"}.${kind}`)}
      needs="holds"
      isDangerous={!isHeld}
      note={{ label: t("note") }}
      recipe={recipeOf(kind, isHeld, time)}
      onConfirm={async (note) => {
        await send(kind, isHeld, time, note);
        await queries.invalidateQueries({ queryKey: ["governor"] });
      }}
    >
      {t(`holds.explain.${isHeld ? "release" : kind}`)}
      {isTimed && (
        <TextInput mt="md" label={t("lasts")} description={t("lastsHint")} value={lasts} onChange={(event) => setLasts(event.currentTarget.value)} />
      )}
    </ConfirmDialog>
  );
}

function send(kind: Kind, isHeld: boolean, expiresIn: string | undefined, text: string) {
  const note = text ? { note: text } : {};
  if (kind === "dispatch") {
    return isHeld ? resumeDispatch(note) : pauseDispatch(note);
  }
  return isHeld ? unfreezeWork({ what: kind, ...note }) : freezeWork({ what: kind, ...(expiresIn && { expiresIn }), ...note });
}

function recipeOf(kind: Kind, isHeld: boolean, expiresIn: string | undefined): Recipe {
  if (kind === "dispatch") {
    const verb = isHeld ? "resume" : "pause";
    return { method: "POST", path: `/api/v1/scheduler/${verb}`, body: {}, cli: `horai dispatch ${verb}` };
  }
  const verb = isHeld ? "unfreeze" : "freeze";
  const body = { what: kind, ...(expiresIn && { expiresIn }) };
  return { method: "POST", path: `/api/v1/scheduler/${verb}`, body, cli: `horai ${verb} ${kind}${expiresIn ? ` --for ${expiresIn}` : ""}` };
}
