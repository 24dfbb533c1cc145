import { Text } from "@mantine/core";
import { createContext, type ReactNode, useContext } from "react";
import { useTranslation } from "react-i18next";
import type { HoldInForceOut } from "@/api";
import { type Needs, seesPlatform, useMay, useSession } from "@/live";
import { Act } from "@/parts";

/** The one action that removes a cause. */
export type Fix =
  | { kind: "replay"; job: string; since: string }
  | { kind: "cancel"; job: string; instance: string }
  | { kind: "limit"; queue: string; isClogged: boolean }
  | { kind: "rerun"; workflow: string; run: string; node: string }
  | { kind: "test"; channel: string }
  | { kind: "resumeSink"; sink: string }
  | { kind: "release"; what: HoldInForceOut["what"]; scope: HoldInForceOut["scope"] }
  | { kind: "resumeQueue"; queue: string }
  | { kind: "resumeJob"; job: string; id: string }
  | { kind: "tick"; job: string; id: string }
  | { kind: "reconcile"; reconciler: string }
  | { kind: "resumeBackfill"; job: string; id: string };

const NEEDED: Record<Fix["kind"], Needs> = {
  replay: "operator",
  cancel: "operator",
  limit: "admin",
  rerun: "operator",
  test: "holds",
  resumeSink: "operator",
  release: "holds",
  resumeQueue: "admin",
  resumeJob: "operator",
  tick: "operator",
  reconcile: "operator",
  resumeBackfill: "operator",
};

/** What the action is about, for those who hear the button without its line. */
export function subjectOf(fix: Fix): string {
  switch (fix.kind) {
    case "limit":
    case "resumeQueue":
      return fix.queue;
    case "rerun":
      return `${fix.workflow} / ${fix.node}`;
    case "test":
      return fix.channel;
    case "resumeSink":
      return fix.sink;
    case "reconcile":
      return fix.reconciler;
    case "release":
      return fix.what;
    case "cancel":
      return `${fix.job} ${fix.instance}`;
    default:
      return fix.job;
  }
}

/** Opens the dialog of a fix, and knows which ones have worked since the list was computed. */
export const Fixing = createContext<{ ask: (fix: Fix) => void; isDone: (fix: Fix) => boolean }>({
  ask: () => undefined,
  isDone: () => false,
});

/** Whether the caller may do it: a hold is released by those who may make it, of the platform or of the tenant. */
function useMayFix(): (fix: Fix) => boolean {
  const may = useMay();
  const session = useSession().data;
  const scope = seesPlatform(session) ? "platform" : "tenant";
  return (fix) => may(NEEDED[fix.kind]) && (fix.kind !== "release" || fix.scope === scope);
}

/** The button of the first action that the caller may do. Where there is none, or no action fixes the cause: the page that explains it. */
export function FixButton({ fixes, see }: { fixes: readonly (Fix | undefined)[]; see: ReactNode }) {
  const { t } = useTranslation("overview");
  const mayFix = useMayFix();
  const { ask, isDone } = useContext(Fixing);
  const fix = fixes.find((one) => one && mayFix(one));
  if (!fix) return see;
  if (isDone(fix)) {
    return (
      <Text size="xs" c="dimmed" role="status">
        {t("fix.done")}
      </Text>
    );
  }
  const act = t(`fix.${fix.kind}`);
  return (
    <Act size="compact-xs" variant="default" needs={NEEDED[fix.kind]} aria-label={t("fix.named", { act, name: subjectOf(fix) })} onClick={() => ask(fix)}>
      {act}
    </Act>
  );
}
