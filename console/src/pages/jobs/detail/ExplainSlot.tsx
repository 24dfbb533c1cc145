import { Button, Group, Stack, Text } from "@mantine/core";
import { keepPreviousData, useQuery } from "@tanstack/react-query";
import { useState } from "react";
import { useTranslation } from "react-i18next";
import { explain, fieldErrors, type JobOut, type OccurrenceOut } from "@/api";
import { inWords } from "@/i18n";
import { ClockInput, ErrorView, Go, Icon, Panel, StateChip, When } from "@/parts";
import { localOf } from "@/parts/time";
import classes from "./detail.module.css";

/** Why a slot fired, waits, was held or skipped. Asked by the clock of the job, on which a time may be missing or come twice. */
export function ExplainSlot({ job }: { job: JobOut }) {
  const { t } = useTranslation("jobs");
  const zone = job.timezone ?? "UTC";
  const [typed, setTyped] = useState("");
  const [at, ask] = useState("");
  const told = useQuery({
    queryKey: ["instances", "explain", job.id, at],
    queryFn: ({ signal }) => explain(job.id, { at }, { signal }),
    enabled: at !== "",
    placeholderData: keepPreviousData,
  });
  const go = (instant: string): void => {
    setTyped(localOf(new Date(instant), zone));
    ask(instant);
  };
  return (
    <Panel title={t("explain.title")}>
      <form
        onSubmit={(event) => {
          event.preventDefault();
          ask(typed);
        }}
      >
        <Group align="flex-end" gap="sm">
          <ClockInput
            label={t("explain.at")}
            description={t("explain.zone", { zone })}
            value={typed}
            onChange={setTyped}
            error={at === "" ? undefined : fieldErrors(told.error)["at"]}
            w={260}
          />
          <Button type="submit" variant="default" disabled={typed === ""}>
            {t("explain.ask")}
          </Button>
        </Group>
      </form>
      {told.error && !fieldErrors(told.error)["at"] && <ErrorView error={told.error} />}
      {at !== "" && told.data && !told.error && (
        <Stack gap="sm" mt="md" aria-live="polite">
          <Told told={told.data} zone={zone} />
          {told.data.also && <Told told={told.data.also} zone={zone} />}
          <Group gap="xs">
            <Step at={told.data.previous} label={t("explain.previous")} onGo={go} />
            <Step at={told.data.next} label={t("explain.next")} onGo={go} />
          </Group>
        </Stack>
      )}
    </Panel>
  );
}

function Told({ told, zone }: { told: OccurrenceOut; zone: string }) {
  const { t } = useTranslation("jobs");
  return (
    <div className={classes.verdict}>
      <Group gap="sm" mb={4}>
        <Text fw={600}>{t(`explain.verdict.${told.verdict}`)}</Text>
        <Text size="sm" c="dimmed">
          <When at={told.at} zone={zone} />
        </Text>
        {told.instance && (
          <Go to="/instances/$instance" params={{ instance: told.instance.id }} underline="never">
            <StateChip state={told.instance.state} />
          </Go>
        )}
      </Group>
      <Text size="sm">{inWords(told.whySaid)}</Text>
    </div>
  );
}

function Step({ at, label, onGo }: { at: string | null; label: string; onGo: (at: string) => void }) {
  return (
    <Button
      variant="subtle"
      size="compact-sm"
      disabled={at === null}
      onClick={() => at && onGo(at)}
      leftSection={<Icon name="calendar" size={14} />}
    >
      {label}
    </Button>
  );
}
