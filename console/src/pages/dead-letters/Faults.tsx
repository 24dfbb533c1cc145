import { Group, Skeleton, Text } from "@mantine/core";
import { keepPreviousData, useQuery } from "@tanstack/react-query";
import { useTranslation } from "react-i18next";
import { type FaultList, getFaults } from "@/api";
import { Act, ErrorView, Fault, Go, Icon, Panel, When } from "@/parts";
import classes from "./Faults.module.css";
import { countedBy, type LetterFilters, type Status } from "./filters";

type FaultOut = FaultList["items"][number];

const SHOWN = 8;

interface FaultsProps {
  filters: LetterFilters;
  status: Status;
  onReplay: (filters: LetterFilters) => void;
  onDiscard: (filters: LetterFilters) => void;
}

/** The letters by what went wrong, the most frequent first. */
export function Faults({ filters, status, onReplay, onDiscard }: FaultsProps) {
  const { t, i18n } = useTranslation(["dead-letters", "common"]);
  const faults = useQuery({
    queryKey: ["dead-letters", "faults", countedBy(filters, status)],
    queryFn: ({ signal }) => getFaults(countedBy(filters, status), { signal }),
    placeholderData: keepPreviousData,
  });
  if (faults.data?.items.length === 0) return null;
  const most = faults.data?.items[0]?.letters ?? 1;
  const number = new Intl.NumberFormat(i18n.language);
  const total = faults.data && number.format(faults.data.letters);
  const hidden = (faults.data?.items.length ?? 0) - SHOWN;
  return (
    <Panel
      title={t("faults.title")}
      aside={
        <Text size="sm" c="dimmed" className="numbers">
          {total && t(faults.data?.more ? "faults.newest" : "faults.all", { total })}
        </Text>
      }
    >
      <ErrorView error={faults.error} />
      {faults.isPending && <Skeleton height={120} />}
      <ol className={classes.faults}>
        {faults.data?.items.slice(0, SHOWN).map((fault) => (
          <Line
            key={`${fault.jobId} ${fault.fingerprint} ${fault.errorCode}`}
            fault={fault}
            share={fault.letters / most}
            number={number}
            onReplay={() => onReplay(narrowed(filters, fault))}
            onDiscard={() => onDiscard(narrowed(filters, fault))}
          />
        ))}
      </ol>
      {hidden > 0 && (
        <Text size="sm" c="dimmed" mt="sm">
          {t("faults.hidden", { number: hidden })}
        </Text>
      )}
    </Panel>
  );
}

function narrowed(filters: LetterFilters, fault: FaultOut): LetterFilters {
  return { ...filters, job: fault.job, ...(fault.fingerprint ? { fingerprint: fault.fingerprint } : { errorCode: fault.errorCode }) };
}

interface LineProps {
  fault: FaultOut;
  share: number;
  number: Intl.NumberFormat;
  onReplay: () => void;
  onDiscard: () => void;
}

function Line({ fault, share, number, onReplay, onDiscard }: LineProps) {
  const { t } = useTranslation(["dead-letters", "common"]);
  const only = narrowed({}, fault) as Record<string, string>;
  return (
    <li className={classes.fault}>
      <div>
        <div className={`${classes.count} numbers`}>{number.format(fault.letters)}</div>
        <div className={classes.share} style={{ width: `${Math.max(4, share * 100)}%`, marginLeft: "auto" }} />
      </div>
      <div className={classes.what}>
        <Go to="/dead-letters" search={only} size="sm" display="block">
          <Fault code={fault.errorCode} message={fault.errorMsg} />
        </Go>
        <Text size="xs" c="dimmed">
          <bdi>{fault.job}</bdi>
          {" · "}
          <Go to="/dead-letters/$letter" params={{ letter: fault.lastLetter }} inherit underline="always">
            {t("faults.sample")}
          </Go>
        </Text>
      </div>
      <Trend hours={fault.lastDay} />
      <Seen label={t("faults.first")} at={fault.firstAt} />
      <Seen label={t("faults.last")} at={fault.lastAt} />
      <Group gap={4} wrap="nowrap">
        <Act size="xs" variant="default" leftSection={<Icon name="replay" size={14} />} onClick={onReplay}>
          {t("replay.open")}
        </Act>
        <Act size="xs" variant="subtle" color="gray" leftSection={<Icon name="trash" size={14} />} onClick={onDiscard}>
          {t("discard.open")}
        </Act>
      </Group>
    </li>
  );
}

/** How often it came in each hour of the last day, the last hour at the right. */
function Trend({ hours }: { hours: readonly number[] }) {
  const { t } = useTranslation(["dead-letters", "common"]);
  const most = Math.max(1, ...hours);
  const count = hours.reduce((sum, hour) => sum + hour, 0);
  return (
    <div className={classes.trend} role="img" aria-label={t("faults.trend", { count })} title={t("faults.trend", { count })}>
      {hours.map((letters, hour) => (
        // oxlint-disable-next-line react/no-array-index-key -- an hour is its place
        <i key={hour} data-any={letters > 0 || undefined} style={{ height: letters > 0 ? `${Math.max(12, (letters / most) * 100)}%` : undefined }} />
      ))}
    </div>
  );
}

function Seen({ label, at }: { label: string; at: string }) {
  return (
    <div>
      <Text size="xs" c="dimmed">
        {label}
      </Text>
      <Text size="sm" component="div">
        <When at={at} as="relative" />
      </Text>
    </div>
  );
}
