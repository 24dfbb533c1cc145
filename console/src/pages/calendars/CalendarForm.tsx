import { Checkbox, Group, Modal, Textarea, TextInput } from "@mantine/core";
import { useTranslation } from "react-i18next";
import { type CalendarOut, putCalendar } from "@/api";
import { SavingForm, useDraft, useTextChecks } from "@/parts";
import { bodyOf, type CalendarDraft, draftOf, type Weekday, WEEKDAYS } from "./draft";
import { calendarSetting } from "./recipes";

const LINES = ["holidays", "workdays", "hours", "ics"] as const;

interface CalendarFormProps {
  /** The calendar that is changed; null for a new one. */
  changed: CalendarOut | null;
  onClose: () => void;
}

/** Creates a calendar, or replaces its days. */
export function CalendarForm({ opened, changed, onClose }: CalendarFormProps & { opened: boolean }) {
  const { t } = useTranslation("calendars");
  return (
    <Modal opened={opened} onClose={onClose} title={changed ? t("edit.title", { name: changed.name }) : t("create.title")} size="lg">
      {opened && <Form changed={changed} onClose={onClose} />}
    </Modal>
  );
}

function Form({ changed, onClose }: CalendarFormProps) {
  const { t } = useTranslation("calendars");
  const kept = useDraft(changed ? `calendar ${changed.name} ${changed.version}` : "new calendar", draftOf(changed));
  const { draft } = kept;
  const checks = useTextChecks({ ...(!changed && { name: ["name", draft.name] }), holidays: ["days", draft.holidays] });
  const change = (fields: Partial<CalendarDraft>) => kept.change((before) => ({ ...before, ...fields }));
  return (
    <SavingForm
      fields={["name", "weekend", ...LINES]}
      topic="calendars"
      needs="admin"
      kept={kept}
      checks={checks}
      required={changed ? {} : { name: draft.name }}
      recipe={calendarSetting(changed?.name ?? draft.name.trim(), bodyOf(draft))}
      confirm={t(changed ? "edit.confirm" : "create.act")}
      // Version 0: a calendar of this name that exists already is not overwritten.
      save={() => putCalendar(changed?.name ?? draft.name.trim(), bodyOf(draft), { headers: { "If-Match": `"${changed?.version ?? 0}"` } })}
      onClose={onClose}
    >
      {(faults) => (
        <>
          {!changed && (
            <TextInput label={t("column.name")} value={draft.name} error={faults["name"]} onChange={(event) => change({ name: event.currentTarget.value })} data-autofocus required />
          )}
          <Checkbox.Group label={t("column.weekend")} description={t("hint.weekend")} value={draft.weekend} error={faults["weekend"]} onChange={(days) => change({ weekend: days as Weekday[] })}>
            <Group gap="md" mt="xs">
              {WEEKDAYS.map((day) => (
                <Checkbox key={day} value={day} label={t(`weekday.${day}`)} />
              ))}
            </Group>
          </Checkbox.Group>
          {LINES.map((name) => (
            <Textarea
              key={name}
              label={t(`column.${name}`)}
              description={t(`hint.${name}`)}
              value={draft[name]}
              error={faults[name]}
              autosize
              minRows={2}
              maxRows={10}
              onChange={(event) => change({ [name]: event.currentTarget.value })}
            />
          ))}
        </>
      )}
    </SavingForm>
  );
}
