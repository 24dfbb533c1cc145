import { Button, Skeleton, Text } from "@mantine/core";
import { useQueryClient } from "@tanstack/react-query";
import { lazy, Suspense, useCallback, useEffect, useMemo, useRef, useState } from "react";
import { useTranslation } from "react-i18next";
import { ErrorView, Panel } from "@/parts";
import { type Fix, Fixing } from "./fixes";
import { needsOf } from "./needs";
import classes from "./overview.module.css";
import { holdups } from "./standstill";
import { useAttention } from "./stats";

const FEW = 6;
/** The dialogs of all pages: loaded with the first that is opened. */
const FixDialog = lazy(() => import("./FixDialog"));

/** What needs somebody, the worst first; that nothing does is said, too. */
export function Attention() {
  const { t } = useTranslation("overview");
  const { data, error, isPending, refetch } = useAttention();
  const [isOpen, open] = useState(false);
  const [asked, ask] = useState<Fix | null>(null);
  const isDone = useFixed(asked, data?.computedAt);
  const fixing = useMemo(() => ({ ask, isDone }), [isDone]);
  const needs = data ? needsOf(data) : [];
  // What holds up others comes first, and is never folded.
  const few = Math.max(FEW, data ? holdups(data).length : 0);
  return (
    <Panel title={t("attention.title")} aside={needs.length > 0 && <Text size="sm" c="dimmed" className="numbers">{needs.length}</Text>}>
      <ErrorView error={error} onRetry={() => void refetch()} />
      {isPending && <Skeleton height={160} />}
      {data && needs.length === 0 && (
        <Text size="sm" c="dimmed">
          {t("attention.nothing")}
        </Text>
      )}
      <Fixing value={fixing}>
        <ul className={classes.list}>{isOpen ? needs : needs.slice(0, few)}</ul>
      </Fixing>
      {needs.length > few && (
        <Button variant="subtle" size="compact-sm" mt="xs" ml={-8} onClick={() => open(!isOpen)} aria-expanded={isOpen}>
          {isOpen ? t("attention.fewer") : t("attention.more", { count: needs.length - few })}
        </Button>
      )}
      <Suspense>{asked && <FixDialog fix={asked} onClose={() => ask(null)} />}</Suspense>
    </Panel>
  );
}

/**
 * The fixes that have worked since the list was computed: the server keeps its answer for some seconds, and the line stays as long.
 * A line of the next answer is a cause that is still there. A test message fixes nothing by itself.
 */
function useFixed(asked: Fix | null, computedAt: string | undefined): (fix: Fix) => boolean {
  const queries = useQueryClient();
  const [done, setDone] = useState<ReadonlyMap<string, string | undefined>>(new Map());
  const latest = useRef({ asked, computedAt });
  useEffect(() => {
    latest.current = { asked, computedAt };
  });
  useEffect(() => {
    // The dialog closes before its request is told to have worked: what it is for is noted when it begins.
    const begun = new Map<number, string>();
    return queries.getMutationCache().subscribe((event) => {
      if (event.type !== "updated") return;
      const { mutationId } = event.mutation;
      const fix = latest.current.asked;
      if (event.action.type === "pending" && fix && fix.kind !== "test") begun.set(mutationId, JSON.stringify(fix));
      const fixed = begun.get(mutationId);
      if (event.action.type !== "success" || fixed === undefined) return;
      begun.delete(mutationId);
      setDone((before) => new Map(before).set(fixed, latest.current.computedAt));
      void queries.invalidateQueries({ queryKey: ["instances", "attention"] });
    });
  }, [queries]);
  return useCallback((fix) => computedAt !== undefined && done.get(JSON.stringify(fix)) === computedAt, [done, computedAt]);
}
