import { Button, Group, NumberInput, SegmentedControl, SimpleGrid, Stack, Text, TextInput } from "@mantine/core";
import { type FormEvent, useState } from "react";
import { useTranslation } from "react-i18next";
import { areAllShown, fieldErrors, type Peak, type WhatIfOut } from "@/api";
import { useZone } from "@/app/zones";
import { CronWords, ErrorView, Panel, Stat, When, ZoneSelect } from "@/parts";
import { type TrialDraft, trialOf } from "./trial";
import type { useWhatIf } from "./useWhatIf";

const MOST_JOBS = 10_000_000;
const FIELDS = ["cron", "every", "timezone", "jobs"];

/** A button that opens the form of hypothetical jobs. */
export function WhatIf({ whatIf }: { whatIf: ReturnType<typeof useWhatIf> }) {
  const { t } = useTranslation("forecast");
  const [isOpen, setOpen] = useState(false);
  const close = (): void => {
    whatIf.ask(null);
    setOpen(false);
  };
  return isOpen ? (
    <TrialForm whatIf={whatIf} onClose={close} />
  ) : (
    <Button variant="default" onClick={() => setOpen(true)} style={{ alignSelf: "flex-start" }}>
      {t("whatIf.open")}
    </Button>
  );
}

interface TrialFormProps {
  whatIf: ReturnType<typeof useWhatIf>;
  /** Closes the form, and takes the hypothetical jobs out of the forecast. */
  onClose: () => void;
}

/** Adds jobs that do not exist to the forecast, and tells the busiest minute without and with them. Nothing is saved. */
function TrialForm({ whatIf, onClose }: TrialFormProps) {
  const { t } = useTranslation(["forecast", "schedules"]);
  const zone = useZone();
  const [draft, setDraft] = useState<TrialDraft>({ kind: "cron", cron: "", every: "", timezone: zone, jobs: 1_000 });
  const errors = fieldErrors(whatIf.error);
  const submit = (event: FormEvent): void => {
    event.preventDefault();
    whatIf.ask(trialOf(draft));
  };
  return (
    <Panel title={t("whatIf.title")}>
      <Stack gap="md" renderRoot={(root) => <form {...root} noValidate />} onSubmit={submit}>
        <Text size="sm" c="dimmed">
          {t("whatIf.explain")}
        </Text>
        <SegmentedControl
          aria-label={t("schedules:kind.label")}
          value={draft.kind}
          onChange={(kind) => setDraft({ ...draft, kind: kind as TrialDraft["kind"] })}
          data={(["cron", "every"] as const).map((kind) => ({ value: kind, label: t(`schedules:kind.${kind}`) }))}
          style={{ alignSelf: "flex-start" }}
        />
        <SimpleGrid cols={{ base: 1, sm: 3 }} spacing="sm">
          <Expression draft={draft} onChange={setDraft} errors={errors} />
          <NumberInput
            label={t("whatIf.jobs")}
            allowDecimal={false}
            min={1}
            max={MOST_JOBS}
            thousandSeparator=","
            value={draft.jobs}
            onChange={(jobs) => setDraft({ ...draft, jobs: Number(jobs) || 1 })}
            error={errors["jobs"]}
          />
        </SimpleGrid>
        {whatIf.error && !areAllShown(whatIf.error, FIELDS) ? <ErrorView error={whatIf.error} /> : null}
        <Group gap="xs">
          <Button type="submit" loading={whatIf.isLoading}>
            {t("whatIf.show")}
          </Button>
          <Button variant="default" onClick={onClose}>
            {t("whatIf.clear")}
          </Button>
        </Group>
        {whatIf.answer && <Effect answer={whatIf.answer} />}
      </Stack>
    </Panel>
  );
}

interface ExpressionProps {
  draft: TrialDraft;
  onChange: (draft: TrialDraft) => void;
  errors: Record<string, string>;
}

function Expression({ draft, onChange, errors }: ExpressionProps) {
  const { t } = useTranslation("schedules");
  if (draft.kind === "every") {
    return (
      <TextInput
        label={t("interval")}
        placeholder="15m"
        value={draft.every}
        onChange={(event) => onChange({ ...draft, every: event.currentTarget.value })}
        error={errors["every"]}
      />
    );
  }
  return (
    <>
      <TextInput
        label={t("cron")}
        placeholder="0 9 * * *"
        spellCheck={false}
        value={draft.cron}
        onChange={(event) => onChange({ ...draft, cron: event.currentTarget.value })}
        error={errors["cron"]}
        inputWrapperOrder={["label", "input", "description", "error"]}
        description={!errors["cron"] && <CronWords cron={draft.cron} />}
        styles={{ input: { fontFamily: "var(--mantine-font-family-monospace)" } }}
      />
      <ZoneSelect label={t("timezone")} value={draft.timezone} onChange={(zone) => onChange({ ...draft, timezone: zone })} error={errors["timezone"]} />
    </>
  );
}

/** What the hypothetical jobs would change. */
function Effect({ answer }: { answer: WhatIfOut }) {
  const { t, i18n } = useTranslation("forecast");
  const number = (value: number): string => value.toLocaleString(i18n.language);
  return (
    <div role="status">
      <SimpleGrid cols={{ base: 1, sm: 3 }} spacing="sm">
        <Stat label={t("whatIf.adds")} value={number(answer.total)} hint={t("jobCount", { count: answer.jobs })} />
        <Stat label={t("whatIf.before")} value={number(answer.peakBefore?.fires ?? 0)} hint={<PeakMinute peak={answer.peakBefore} />} />
        <Stat label={t("whatIf.after")} value={number(answer.peakAfter?.fires ?? 0)} hint={<PeakMinute peak={answer.peakAfter} />} />
      </SimpleGrid>
      <Crossing answer={answer} />
    </div>
  );
}

/** Whether minutes exceed the highest number of starts that was measured. */
function Crossing({ answer }: { answer: WhatIfOut }) {
  const { t, i18n } = useTranslation("forecast");
  const { highestMeasured: measured, minutesAboveBefore: before, minutesAboveAfter: after } = answer;
  if (measured === null) {
    return (
      <Text size="sm" c="dimmed" mt="sm">
        {t("curve.notMeasured")}
      </Text>
    );
  }
  const values = { starts: measured.starts.toLocaleString(i18n.language), count: after ?? 0, before: before ?? 0 };
  return (
    <Text size="sm" c={after ? "var(--horai-warn)" : "var(--horai-good)"} mt="sm">
      {after ? t("whatIf.above", values) : t("whatIf.below", values)}
    </Text>
  );
}

function PeakMinute({ peak }: { peak: Peak | null }) {
  return peak && <When at={peak.at} precision="minute" />;
}
