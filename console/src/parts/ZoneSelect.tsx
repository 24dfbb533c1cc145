import { Select, type SelectProps } from "@mantine/core";
import type { KeyboardEvent } from "react";

const ZONES = ["UTC", ...Intl.supportedValuesOf("timeZone").filter((zone) => zone !== "UTC")];

interface ZoneSelectProps extends Omit<SelectProps, "data" | "value" | "onChange" | "searchable" | "limit"> {
  value: string | null;
  onChange: (zone: string) => void;
}

/**
 * Choose a time zone by typing a part of its name. Focus selects the old text, so typing replaces it; Enter chooses the first
 * match and never submits the form around it.
 */
export function ZoneSelect({ value, onChange, ...rest }: ZoneSelectProps) {
  return (
    <Select
      {...rest}
      searchable
      selectFirstOptionOnChange
      allowDeselect={false}
      limit={50}
      data={value === null || ZONES.includes(value) ? ZONES : [value, ...ZONES]}
      value={value}
      onChange={(zone) => zone !== null && onChange(zone)}
      onFocus={(event) => event.currentTarget.select()}
      onKeyDown={keepEnter}
    />
  );
}

function keepEnter(event: KeyboardEvent): void {
  if (event.key === "Enter") event.preventDefault();
}
