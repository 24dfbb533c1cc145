import { Button, Group, MultiSelect, Select, TextInput } from "@mantine/core";
import { useDebouncedCallback } from "@mantine/hooks";
import { useState } from "react";
import { useTranslation } from "react-i18next";
import { STATES } from "@/generated/states";
import { useFilters } from "./filters";
import { Icon } from "./Icon";
import { InstantInput } from "./InstantInput";

export type FilterField = { name: string; label: string; width?: number } & (
  | { kind: "text"; placeholder?: string }
  | { kind: "choice"; options: readonly { value: string; label: string }[] }
  | { kind: "states" }
  | { kind: "instant" }
);

/** Filters in the address of the page. Several states are written `FAIL,DEAD`. */
export function FilterBar({ fields }: { fields: readonly FilterField[] }) {
  const { t } = useTranslation();
  const names = fields.map((field) => field.name);
  const [filters, change] = useFilters(names);
  const isFiltered = Object.keys(filters).length > 0;
  return (
    <Group gap="sm" align="flex-end" role="search">
      {fields.map((field) => (
        <FilterInput
          key={field.name}
          field={field}
          value={filters[field.name] ?? ""}
          onChange={(value) => change({ [field.name]: value })}
        />
      ))}
      {isFiltered && (
        <Button
          variant="subtle"
          leftSection={<Icon name="close" size={16} />}
          onClick={() => change(Object.fromEntries(names.map((name) => [name, undefined])))}
        >
          {t("filter.clear")}
        </Button>
      )}
    </Group>
  );
}

interface FieldProps {
  field: FilterField;
  value: string;
  onChange: (value: string | undefined) => void;
}

/** One of them alone, for pages that lay theirs out themselves. */
export function FilterInput({ field, value, onChange }: FieldProps) {
  const { t } = useTranslation();
  const common = { label: field.label, w: field.width ?? 200 };
  switch (field.kind) {
    case "text":
      return <TextField {...common} {...(field.placeholder && { placeholder: field.placeholder })} value={value} onChange={onChange} />;
    case "choice":
      return (
        <Select
          {...common}
          clearable
          data={[...field.options]}
          value={value || null}
          placeholder={t("filter.any")}
          onChange={(chosen) => onChange(chosen ?? undefined)}
        />
      );
    case "states":
      return (
        <MultiSelect
          {...common}
          clearable
          data={STATES.map((state) => ({ value: state.name, label: t(`state.${state.name}`) }))}
          value={value ? value.split(",") : []}
          placeholder={value ? "" : t("filter.any")}
          onChange={(chosen) => onChange(chosen.join(",") || undefined)}
        />
      );
    case "instant":
      return <InstantInput {...common} value={value} onChange={onChange} inputWrapperOrder={["label", "input"]} />;
  }
}

/** Waits until the typing pauses; what comes from the address (back, a link) is taken over. */
function TextField({ value, onChange, ...rest }: { label: string; w: number; placeholder?: string } & Pick<FieldProps, "value" | "onChange">) {
  const [text, setText] = useState(value);
  const tell = useDebouncedCallback((typed: string) => onChange(typed || undefined), 300);
  const [taken, take] = useState(value);
  if (value !== taken) {
    take(value);
    setText(value);
  }
  return (
    <TextInput
      {...rest}
      value={text}
      onChange={(event) => {
        setText(event.currentTarget.value);
        tell(event.currentTarget.value);
      }}
    />
  );
}
