import { ActionIcon, Button, Group, SegmentedControl, Select, Stack, Text, TextInput } from "@mantine/core";
import { useTranslation } from "react-i18next";
import { Icon } from "@/parts";
import type { HeaderRow, JobDraft } from "./draft";
import { EXAMPLE } from "./examples";
import { errorOf, type FieldsProps } from "./field";

const METHODS = ["POST", "GET", "PUT", "PATCH", "DELETE"];

/** Where an attempt goes: an HTTP address, a worker's function, or a JetStream subject. */
export function TargetFields(props: FieldsProps) {
  const { draft, onChange, errors } = props;
  const { t } = useTranslation("jobs");
  return (
    <Stack gap="sm">
      <SegmentedControl
        aria-label={t("form.target")}
        value={draft.targetType}
        onChange={(type) => onChange({ targetType: type as JobDraft["targetType"] })}
        data={[
          { value: "http", label: t("form.http") },
          { value: "worker", label: t("form.worker") },
          { value: "nats", label: t("form.nats") },
        ]}
        maw={480}
      />
      {draft.targetType === "http" && <HttpFields {...props} />}
      {draft.targetType === "nats" && <NatsFields {...props} />}
      {draft.targetType === "worker" && (
        <TextInput
          label={t("form.handler")}
          description={t("form.handlerHint")}
          placeholder={draft.name}
          value={draft.handler}
          onChange={(event) => onChange({ handler: event.currentTarget.value })}
          error={errorOf(errors, "target.handler", "target")}
          maw={360}
        />
      )}
    </Stack>
  );
}

function NatsFields({ draft, onChange, errors }: FieldsProps) {
  const { t } = useTranslation("jobs");
  return (
    <>
      <Group gap="sm" align="flex-start" wrap="nowrap">
        <TextInput
          label={t("form.broker")}
          description={t("form.brokerHint")}
          value={draft.broker}
          onChange={(event) => onChange({ broker: event.currentTarget.value })}
          error={errorOf(errors, "target.broker", "target.type")}
          w={240}
        />
        <TextInput
          label={t("form.subject")}
          description={EXAMPLE.subject}
          value={draft.subject}
          onChange={(event) => onChange({ subject: event.currentTarget.value })}
          error={errorOf(errors, "target.subject")}
          flex={1}
        />
      </Group>
      <Select
        label={t("form.settleOn")}
        data={(["stored", "reported"] as const).map((value) => ({ value, label: t(`form.settleOns.${value}`) }))}
        value={draft.settleOn}
        onChange={(value) => onChange({ settleOn: value === "reported" ? "reported" : "stored" })}
        allowDeselect={false}
        error={errors["target.settleOn"]}
        maw={360}
      />
    </>
  );
}

function HttpFields({ draft, onChange, errors }: FieldsProps) {
  const { t } = useTranslation("jobs");
  return (
    <>
      <Group gap="sm" align="flex-start" wrap="nowrap">
        <Select
          label={t("form.method")}
          data={METHODS}
          value={draft.method}
          onChange={(method) => onChange({ method: method ?? "POST" })}
          allowDeselect={false}
          error={errors["target.method"]}
          w={120}
        />
        <TextInput
          label={t("form.url")}
          placeholder={EXAMPLE.url}
          type="url"
          value={draft.url}
          onChange={(event) => onChange({ url: event.currentTarget.value })}
          error={errorOf(errors, "target.url")}
          flex={1}
        />
      </Group>
      <TextInput
        label={t("form.batchSize")}
        description={t("form.batchSizeHint")}
        value={draft.batchSize}
        onChange={(event) => onChange({ batchSize: event.currentTarget.value })}
        error={errorOf(errors, "target.batch.size", "target.batch")}
        maw={360}
      />
      <HeaderRows rows={draft.headers} onChange={(headers) => onChange({ headers })} error={errors["target.headers"]} />
    </>
  );
}

function HeaderRows({ rows, onChange, error }: { rows: HeaderRow[]; onChange: (rows: HeaderRow[]) => void; error: string | undefined }) {
  const { t } = useTranslation("jobs");
  const change = (place: number, part: Partial<HeaderRow>): void =>
    onChange(rows.map((row, index) => (index === place ? { ...row, ...part } : row)));
  return (
    <Stack gap={6}>
      {rows.map((row, place) => (
        // Rows have no other name than their place.
        // oxlint-disable-next-line react/no-array-index-key
        <Group key={place} gap="xs" wrap="nowrap">
          <TextInput
            aria-label={t("form.headerName", { number: place + 1 })}
            placeholder={EXAMPLE.header}
            value={row.name}
            onChange={(event) => change(place, { name: event.currentTarget.value })}
            w={200}
          />
          <TextInput
            aria-label={t("form.headerValue", { number: place + 1 })}
            value={row.value}
            onChange={(event) => change(place, { value: event.currentTarget.value })}
            flex={1}
          />
          <ActionIcon
            variant="subtle"
            color="gray"
            aria-label={t("form.headerRemove", { number: place + 1 })}
            onClick={() => onChange(rows.filter((_, index) => index !== place))}
          >
            <Icon name="close" size={16} />
          </ActionIcon>
        </Group>
      ))}
      {error && (
        <Text size="xs" c="var(--mantine-color-error)">
          {error}
        </Text>
      )}
      <div>
        <Button
          variant="subtle"
          size="compact-sm"
          leftSection={<Icon name="plus" size={14} />}
          onClick={() => onChange([...rows, { name: "", value: "" }])}
        >
          {t("form.headerAdd")}
        </Button>
      </div>
    </Stack>
  );
}
