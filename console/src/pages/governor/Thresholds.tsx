import { Button, Group, Modal, NumberInput, Stack, Switch, TextInput } from "@mantine/core";
import { useMutation, useQueryClient } from "@tanstack/react-query";
import { useState } from "react";
import { useTranslation } from "react-i18next";
import { areAllShown, fieldErrors, putThresholds, type ThresholdsIn, type ThresholdsOut } from "@/api";
import { Act, CheckedForm, CopyAs, ErrorView, Facts, Panel } from "@/parts";
import { thresholdSetting } from "./recipes";

const DURATIONS = ["triggerDelayP95", "triggerDelayFor", "clearFor"] as const;
const NUMBERS = ["runSuccessRate10m", "retryBacklog", "dlqGrowthPerMin", "minStarts", "minOutcomes"] as const;
const NAMES = [...DURATIONS, ...NUMBERS];

/** The settings of the rules. */
export function Thresholds({ thresholds }: { thresholds: ThresholdsOut }) {
  const { t, i18n } = useTranslation("governor");
  const [isEditing, edit] = useState(false);
  const number = new Intl.NumberFormat(i18n.language, { maximumFractionDigits: 5 });
  const items = NAMES.map((name) => {
    const value = thresholds[name];
    return [t(`thresholds.name.${name}`), typeof value === "number" ? number.format(value) : value] as const;
  });
  return (
    <Panel
      title={t("thresholds.title")}
      aside={
        <Act needs="platform" size="xs" variant="default" onClick={() => edit(true)}>
          {t("thresholds.edit")}
        </Act>
      }
    >
      <Facts items={[...items, [t("thresholds.name.dryRun"), t(thresholds.dryRun ? "thresholds.yes" : "thresholds.no")]]} />
      <Modal opened={isEditing} onClose={() => edit(false)} title={t("thresholds.edit")}>
        {isEditing && <Form known={thresholds} onClose={() => edit(false)} />}
      </Modal>
    </Panel>
  );
}

function Form({ known, onClose }: { known: ThresholdsOut; onClose: () => void }) {
  const { t } = useTranslation(["governor", "common"]);
  const queries = useQueryClient();
  const { figures: _, ...settings } = known;
  const [draft, change] = useState<ThresholdsIn>(settings);
  const saving = useMutation({
    mutationFn: () => putThresholds(draft),
    onSuccess: async () => {
      await queries.invalidateQueries({ queryKey: ["governor"] });
      onClose();
    },
  });
  const told = fieldErrors(saving.error);
  return (
    <CheckedForm required={Object.fromEntries(NAMES.map((name) => [name, draft[name]]))} onSubmit={() => saving.mutate()}>
      {(own) => (
        <Stack gap="sm">
          {DURATIONS.map((name) => (
            <TextInput
              key={name}
              label={t(`thresholds.name.${name}`)}
              value={draft[name] ?? ""}
              error={own[name] ?? told[name]}
              onChange={(event) => change({ ...draft, [name]: event.currentTarget.value })}
              required
            />
          ))}
          {NUMBERS.map((name) => (
            <NumberInput
              key={name}
              label={t(`thresholds.name.${name}`)}
              value={draft[name] ?? ""}
              error={own[name] ?? told[name]}
              decimalScale={name === "runSuccessRate10m" ? 5 : 0}
              onChange={(value) => change({ ...draft, [name]: Number(value) })}
              required
            />
          ))}
          <Switch
            label={t("thresholds.name.dryRun")}
            description={t("thresholds.dryRunHint")}
            checked={draft.dryRun ?? false}
            onChange={(event) => change({ ...draft, dryRun: event.currentTarget.checked })}
          />
          {!areAllShown(saving.error, NAMES) && <ErrorView error={saving.error} />}
          <Group justify="space-between">
            <CopyAs recipe={thresholdSetting(draft)} />
            <Group gap="xs">
              <Button variant="default" onClick={onClose}>
                {t("common:dialog.cancel")}
              </Button>
              <Act needs="platform" type="submit" loading={saving.isPending}>
                {t("thresholds.save")}
              </Act>
            </Group>
          </Group>
        </Stack>
      )}
    </CheckedForm>
  );
}
