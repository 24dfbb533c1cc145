import { Button, Group, List, Modal, Stack, Text } from "@mantine/core";
import { keepPreviousData, useQuery, useQueryClient } from "@tanstack/react-query";
import type { ReactNode } from "react";
import { useTranslation } from "react-i18next";
import { areAllShown, fieldErrors } from "@/api";
import { Act } from "./Act";
import { CopyAs } from "./CopyAs";
import { ErrorView } from "./ErrorView";
import { ProgressBar } from "./ProgressBar";
import type { Recipe } from "./recipes";
import { TOTALS } from "./total";
import { type Skipped, type Tally, useWork } from "./useWork";

interface BulkDialogProps {
  title: string;
  /** The effect on each row, and its limits. */
  explain: string;
  /** How many it would be now, by a request that changes nothing. */
  count: { key: readonly unknown[]; ask: (signal: AbortSignal) => Promise<{ matched: number; more: boolean }>; isOff?: boolean };
  /** `12 will be cancelled.`; with `isMore`, at least so many. */
  counted: (count: number, number: string, isMore: boolean) => string;
  done: (count: number, number: string) => string;
  /** Said where none can be changed. */
  nothing: string;
  confirm: string;
  isDangerous?: boolean;
  needs?: "operator" | "admin";
  /** Why it may not begin yet. */
  why?: string | null;
  recipe: Recipe | null;
  /** The topics of the lists that it changes. */
  topics: readonly string[];
  /** The names of the fields that `children` draws: their faults are shown there. */
  fields?: readonly string[];
  children?: (faults: Record<string, string>, matched: number | undefined) => ReactNode;
  begin: () => AsyncIterable<Tally>;
  onClose: () => void;
}

/** The one way to change many: counts them, asks, does it in batches, and says what was done, what was skipped, and why. */
export function BulkDialog(props: BulkDialogProps) {
  return (
    <Modal opened onClose={props.onClose} title={props.title} size="lg" closeOnClickOutside={false}>
      <Asking {...props} />
    </Modal>
  );
}

function Asking({ count, counted, fields, ...props }: BulkDialogProps) {
  const { t, i18n } = useTranslation();
  const queries = useQueryClient();
  const work = useWork(() => {
    for (const topic of [...props.topics, TOTALS]) void queries.invalidateQueries({ queryKey: [topic] });
  });
  // A field that the server does not take is said at the field, and nothing has begun.
  const faults = work.phase === "done" ? fieldErrors(work.error) : {};
  const isRefused = Object.keys(faults).length > 0;
  const isAsking = work.phase === "idle" || isRefused;
  const found = useQuery({
    queryKey: ["bulk", ...count.key],
    queryFn: ({ signal }) => count.ask(signal),
    placeholderData: keepPreviousData,
    enabled: isAsking && !count.isOff,
    gcTime: 0,
  });
  const { matched, more = false } = found.data ?? {};
  const number = (value: number): string => new Intl.NumberFormat(i18n.language).format(value);
  if (!isAsking) return <BulkProgress {...props} work={work} total={(matched ?? 0) + (more ? 1 : 0)} />;
  const why = props.why ?? (matched === undefined ? t("bulk.counting") : matched === 0 ? props.nothing : null);
  return (
    <Stack gap="md">
      <Text size="sm">{props.explain}</Text>
      {props.children?.(faults, matched)}
      <Text size="sm" fw={600} aria-live="polite" className="numbers">
        {matched === undefined ? t("bulk.counting") : counted(matched, number(matched), more)}
      </Text>
      <ErrorView error={found.error} />
      {isRefused && !areAllShown(work.error, [...(fields ?? [])]) && <ErrorView error={work.error} />}
      <Group justify="space-between">
        <div>{props.recipe && <CopyAs recipe={props.recipe} />}</div>
        <Group gap="xs">
          <Button variant="default" onClick={props.onClose}>
            {t("bulk.back")}
          </Button>
          <Act {...(props.isDangerous && { color: "red" })} {...(props.needs && { needs: props.needs })} why={why} onClick={() => work.start(props.begin())}>
            {props.confirm}
          </Act>
        </Group>
      </Group>
    </Stack>
  );
}

type ProgressProps = Pick<BulkDialogProps, "title" | "done" | "onClose"> & { work: ReturnType<typeof useWork>; total: number };

/** How far it has come; it can be stopped between two batches. */
function BulkProgress({ title, done, work, total, onClose }: ProgressProps) {
  const { t, i18n } = useTranslation();
  const { tally } = work;
  const isOver = work.phase === "done";
  const met = tally.done + tally.left;
  return (
    <Stack gap="md">
      <ProgressBar label={title} done={tally.done} total={isOver ? met : Math.max(total, met)} tone={work.error ? "failed" : isOver ? "done" : "running"} />
      <Text size="sm" aria-live="polite">
        {isOver ? done(tally.done, new Intl.NumberFormat(i18n.language).format(tally.done)) : t("bulk.working")}
      </Text>
      <SkippedList tally={tally} />
      <ErrorView error={work.error} />
      <Group justify="flex-end">
        {isOver ? (
          <Button onClick={onClose}>{t("bulk.close")}</Button>
        ) : (
          <Button variant="default" loading={work.phase === "stopping"} onClick={work.stop}>
            {t("bulk.stop")}
          </Button>
        )}
      </Group>
    </Stack>
  );
}

function SkippedList({ tally }: { tally: Tally }) {
  const { t, i18n } = useTranslation();
  const reasons = Object.entries(tally.skipped ?? {}) as [keyof Skipped, number][];
  if (reasons.length === 0) return null;
  return (
    <List size="sm">
      {reasons.map(([why, number]) => (
        <List.Item key={why}>{t(`bulk.skipped.${why}`, { number: new Intl.NumberFormat(i18n.language).format(number) })}</List.Item>
      ))}
      {tally.details?.map((detail) => (
        <List.Item key={detail}>
          <bdi>{detail}</bdi>
        </List.Item>
      ))}
    </List>
  );
}
