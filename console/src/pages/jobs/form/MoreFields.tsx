import { Checkbox, Select, SimpleGrid, Stack, TagsInput, Text, Textarea, TextInput } from "@mantine/core";
import type { ReactNode } from "react";
import { useTranslation } from "react-i18next";
import { InstantInput } from "@/parts";
import { isRepeating, type JobDraft } from "./draft";
import { EXAMPLE } from "./examples";
import { errorOf, type FieldsProps } from "./field";
import { ZoneField } from "./WhenFields";

/** Fields of the server whose faults stand in here. */
export const MORE = [
  "queue", "priority", "retry", "timeout", "misfire", "misfireAfter", "overlap", "jitter", "dst", "calendar", "startAt", "endAt", "tags", "encrypted", "searchPaths",
  "keepHistory", "keepDeadLetters", "description", "owner",
];

/** What most jobs leave as it is. */
export function MoreFields(props: FieldsProps) {
  const { draft } = props;
  const { t } = useTranslation("jobs");
  return (
    <Stack gap="lg">
      <Part title={t("form.part.people")}>
        <Words {...props} name="owner" field="owner" />
        <Textarea
          label={t("form.description")}
          description={t("form.descriptionHint")}
          value={draft.description}
          onChange={(event) => props.onChange({ description: event.currentTarget.value })}
          error={errorOf(props.errors, "description")}
          autosize
          maxRows={8}
          maxLength={4_000}
        />
      </Part>
      <Part title={t("form.part.order")}>
        <OrderFields {...props} />
      </Part>
      <Part title={t("form.part.retry")}>
        <RetryFields {...props} />
      </Part>
      {isRepeating(draft) && (
        <>
          {!(draft.when === "every" && draft.isFromFinish) && (
            <Part title={t("form.part.late")}>
              <LateFields {...props} />
            </Part>
          )}
          <Part title={t("form.part.calendar")}>
            <CalendarFields {...props} />
          </Part>
        </>
      )}
      <Part title={t("form.part.keep")}>
        <Words {...props} name="keepHistory" field="keepHistory" placeholder="14d" />
        <Words {...props} name="keepDeadLetters" field="keepDeadLetters" placeholder="90d" />
      </Part>
    </Stack>
  );
}

function Part({ title, children }: { title: string; children: ReactNode }) {
  return (
    <div role="group" aria-label={title}>
      <Text size="sm" fw={600} mb="xs">
        {title}
      </Text>
      <SimpleGrid cols={{ base: 1, sm: 2 }} spacing="md" verticalSpacing="sm">
        {children}
      </SimpleGrid>
    </div>
  );
}

type TextName = { [Name in keyof JobDraft]: JobDraft[Name] extends string ? Name : never }[keyof JobDraft];

function Words({ name, field, placeholder, ...props }: FieldsProps & { name: TextName; field: string; placeholder?: string }) {
  const { t } = useTranslation("jobs");
  return (
    <TextInput
      label={t(`form.${name as "queue"}`)}
      description={t(`form.${name as "queue"}Hint`)}
      placeholder={placeholder}
      value={props.draft[name]}
      onChange={(event) => props.onChange({ [name]: event.currentTarget.value })}
      error={errorOf(props.errors, field)}
    />
  );
}

function OrderFields(props: FieldsProps) {
  const { draft, onChange, errors } = props;
  const { t } = useTranslation(["jobs", "common"]);
  const priorities = (["core", "high", "normal", "low"] as const).map((value) => ({ value, label: t(`common:priority.${value}`) }));
  return (
    <>
      <Words {...props} name="queue" field="queue" placeholder={EXAMPLE.queue} />
      <Select
        label={t("form.priority")}
        description={t("form.priorityHint")}
        data={priorities}
        value={draft.priority || null}
        placeholder={t("form.priorityOfQueue")}
        onChange={(priority) => onChange({ priority: (priority ?? "") as JobDraft["priority"] })}
        clearable
        error={errors["priority"]}
      />
      <TagsInput
        label={t("form.tags")}
        description={t("form.tagsHint")}
        value={draft.tags}
        onChange={(tags) => onChange({ tags })}
        error={errorOf(errors, "tags")}
      />
      <Checkbox
        label={t("form.encrypted")}
        description={t("form.encryptedHint")}
        checked={draft.isEncrypted}
        disabled={props.isThere ?? false}
        onChange={(event) => onChange({ isEncrypted: event.currentTarget.checked })}
        error={errors["encrypted"]}
      />
      {draft.isEncrypted && (
        <TagsInput
          label={t("form.searchPaths")}
          description={t("form.searchPathsHint")}
          value={draft.searchPaths}
          disabled={props.isThere ?? false}
          onChange={(searchPaths) => onChange({ searchPaths })}
          error={errorOf(errors, "searchPaths")}
        />
      )}
    </>
  );
}

function RetryFields(props: FieldsProps) {
  const { draft, onChange, errors } = props;
  const { t } = useTranslation("jobs");
  const jitters = (["additive", "full", "none"] as const).map((value) => ({ value, label: t(`form.jitters.${value}`) }));
  return (
    <>
      <Words {...props} name="timeout" field="timeout" placeholder={draft.targetType === "worker" ? "" : "5s"} />
      <Words {...props} name="maxRetry" field="retry.maxRetry" placeholder="5" />
      <Words {...props} name="maxLost" field="retry.maxLost" placeholder="20" />
      <Words {...props} name="retryBase" field="retry.base" placeholder={EXAMPLE.retryBase} />
      <Words {...props} name="retryCap" field="retry.cap" placeholder={EXAMPLE.retryCap} />
      <Select
        label={t("form.retryJitter")}
        description={t("form.retryJitterHint")}
        data={jitters}
        value={draft.retryJitter || "additive"}
        onChange={(jitter) => onChange({ retryJitter: jitter ?? "" })}
        allowDeselect={false}
        error={errors["retry.jitter"]}
      />
    </>
  );
}

function LateFields(props: FieldsProps) {
  const { draft, onChange, errors } = props;
  const { t } = useTranslation("jobs");
  const policies = (["once", "skip", "all"] as const).map((value) => ({ value, label: t(`form.misfires.${value}`) }));
  const overlaps = (["allow", "skip", "queue", "replace"] as const).map((value) => ({ value, label: t(`form.overlaps.${value}`) }));
  return (
    <>
      <Select
        label={t("form.misfire")}
        description={t("form.misfireHint")}
        data={policies}
        value={draft.misfire}
        onChange={(policy) => onChange({ misfire: (policy ?? "once") as JobDraft["misfire"] })}
        allowDeselect={false}
        error={errorOf(errors, "misfire")}
      />
      <Words {...props} name="misfireAfter" field="misfireAfter" placeholder="60s" />
      {draft.misfire === "all" && (
        <>
          <Words {...props} name="maxCatchup" field="misfire.maxCatchup" />
          <Words {...props} name="catchupWindow" field="misfire.window" />
        </>
      )}
      <Select
        label={t("form.overlap")}
        description={t("form.overlapHint")}
        data={overlaps}
        value={draft.overlap}
        onChange={(overlap) => onChange({ overlap: (overlap ?? "allow") as JobDraft["overlap"] })}
        allowDeselect={false}
        error={errors["overlap"]}
      />
      <Words {...props} name="jitter" field="jitter" placeholder="0s" />
    </>
  );
}

function CalendarFields(props: FieldsProps) {
  const { draft, onChange, errors } = props;
  const { t } = useTranslation("jobs");
  return (
    <>
      <TagsInput
        label={t("form.calendar")}
        description={t("form.calendarHint")}
        placeholder="12-25"
        value={draft.calendar}
        onChange={(calendar) => onChange({ calendar })}
        error={errorOf(errors, "calendar")}
      />
      {draft.when === "every" && draft.calendar.length > 0 ? <ZoneField {...props} /> : <div />}
      <InstantInput label={t("form.startAt")} zone={draft.timezone} value={draft.startAt} onChange={(startAt) => onChange({ startAt })} error={errors["startAt"]} />
      <InstantInput label={t("form.endAt")} zone={draft.timezone} value={draft.endAt} onChange={(endAt) => onChange({ endAt })} error={errors["endAt"]} />
      {draft.when === "cron" && <DstFields {...props} />}
    </>
  );
}

function DstFields({ draft, onChange, errors }: FieldsProps) {
  const { t } = useTranslation("jobs");
  const gaps = (["shift", "skip"] as const).map((value) => ({ value, label: t(`form.gaps.${value}`) }));
  const repeats = (["first", "last", "both"] as const).map((value) => ({ value, label: t(`form.repeats.${value}`) }));
  return (
    <>
      <Select
        label={t("form.dstGap")}
        description={t("form.dstGapHint")}
        data={gaps}
        value={draft.dstGap}
        onChange={(gap) => onChange({ dstGap: (gap ?? "shift") as JobDraft["dstGap"] })}
        allowDeselect={false}
        error={errorOf(errors, "dst")}
      />
      <Select
        label={t("form.dstOverlap")}
        description={t("form.dstOverlapHint")}
        data={repeats}
        value={draft.dstOverlap}
        onChange={(repeat) => onChange({ dstOverlap: (repeat ?? "first") as JobDraft["dstOverlap"] })}
        allowDeselect={false}
      />
    </>
  );
}
