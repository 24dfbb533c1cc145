import { Button, Group, Stack, Text } from "@mantine/core";
import { keepPreviousData, useQuery } from "@tanstack/react-query";
import { useEffect, useRef, useState } from "react";
import { useTranslation } from "react-i18next";
import { explain, fieldErrors, type JobOut, type OccurrenceOut } from "@/api";
import { useToday } from "@/app/clock";
import { useZone } from "@/app/zones";
import { ClockInput, ErrorView, formatInstant, Go, Icon, NamedInstances, Panel, StateChip, useFilters, useSaid, When } from "@/parts";
import { instantAt, localOf, readLocal } from "@/parts/time";
import { EXPLAIN, SlotLink } from "../SlotLink";
import classes from "./detail.module.css";

/**
 * Why a slot fired, waits, was held or skipped. Asked on the clocks of the page. Where these are the job's own, the local time is
 * asked for: it may be missing or come twice. The question is in the address: an instant, or a local time of the job.
 */
export function ExplainSlot({ job }: { job: JobOut }) {
  const { t } = useTranslation("jobs");
  const own = job.timezone ?? "UTC";
  const zone = useZone(own);
  const today = useToday(zone);
  const [{ at = "" }, change] = useFilters(["at"]);
  const asked = typedOf(at, own, zone);
  const [typed, setTyped] = useState(asked);
  const [taken, take] = useState(asked);
  if (asked !== taken) {
    take(asked);
    setTyped(asked);
  }
  const frame = useRef<HTMLDivElement>(null);
  const isLinked = useRef(at !== "");
  useEffect(() => {
    if (isLinked.current) frame.current?.scrollIntoView({ block: "center" });
  }, []);
  const told = useQuery({
    queryKey: ["instances", "explain", job.id, at],
    queryFn: ({ signal }) => explain(job.id, { at }, { signal }),
    enabled: at !== "",
    placeholderData: keepPreviousData,
  });
  const wanted = zone === own ? typed : (instantAt(typed, zone)?.toISOString() ?? "");
  const isSkipped = typed !== "" && wanted === "";
  return (
    <div ref={frame} id={EXPLAIN}>
      <Panel title={t("explain.title")}>
        <form
          noValidate
          onSubmit={(event) => {
            event.preventDefault();
            if (wanted !== "") change({ at: wanted });
          }}
        >
          <Group align="flex-end" gap="sm">
            <ClockInput
              label={t("explain.at")}
              description={t("explain.zone", { zone })}
              value={typed}
              onChange={setTyped}
              today={today}
              error={isSkipped ? t("explain.skipped", { zone }) : at === "" ? undefined : fieldErrors(told.error)["at"]}
              w={280}
            />
            <Button type="submit" variant="default" disabled={wanted === ""}>
              {t("explain.ask")}
            </Button>
          </Group>
        </form>
        {told.error && !fieldErrors(told.error)["at"] && <ErrorView error={told.error} />}
        {at !== "" && told.data && !told.error && (
          <Stack gap="sm" mt="md" aria-live="polite">
            <Told told={told.data} own={own} />
            {told.data.also && <Told told={told.data.also} own={own} />}
            <Group gap="md">
              <Step at={told.data.previous} label={t("explain.previous")} />
              <Step at={told.data.next} label={t("explain.next")} />
            </Group>
          </Stack>
        )}
      </Panel>
    </div>
  );
}

/** The question of the address on the clocks of the page; what is not a time is left to the server to refuse. */
function typedOf(at: string, own: string, zone: string): string {
  const local = readLocal(at);
  if (local !== null && zone === own) return local;
  const instant = local === null ? new Date(at) : (instantAt(local, own) ?? new Date(Number.NaN));
  return Number.isNaN(instant.getTime()) ? "" : localOf(instant, zone);
}

function Told({ told, own }: { told: OccurrenceOut; own: string }) {
  const { t } = useTranslation("jobs");
  const say = useSaid(own);
  const isElsewhere = useZone(own) !== own;
  return (
    <div className={classes.verdict}>
      <Group gap="sm" mb={4}>
        <Text fw={600}>{t(`explain.verdict.${told.verdict}`)}</Text>
        <Text size="sm" c="dimmed">
          <When at={told.at} zone={own} />
        </Text>
        {isElsewhere && told.at && (
          <Text size="sm" c="dimmed" className="numbers">
            {t("explain.own", { time: formatInstant(new Date(told.at), own), zone: own })}
          </Text>
        )}
        {told.instance && (
          <Go to="/instances/$instance" params={{ instance: told.instance.id }} underline="never">
            <StateChip state={told.instance.state} />
          </Go>
        )}
      </Group>
      <Text size="sm">{say(told.whySaid)}</Text>
      <NamedInstances said={told.whySaid} own={told.instance?.id} />
    </div>
  );
}

function Step({ at, label }: { at: string | null; label: string }) {
  if (at === null) return null;
  return (
    <Text size="sm">
      <SlotLink at={at}>
        <Icon name="calendar" size={14} /> {label}
      </SlotLink>
    </Text>
  );
}
