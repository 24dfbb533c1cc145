import { TextInput, type TextInputProps } from "@mantine/core";
import { useTranslation } from "react-i18next";
import { useZone } from "@/app/zones";
import { instantAt, localOf } from "./time";

interface InstantInputProps extends Omit<TextInputProps, "value" | "onChange" | "type"> {
  /** RFC 3339 in UTC, or an empty text. */
  value: string;
  onChange: (instant: string) => void;
  /** The zone of the job it is for, for those who chose to see that. */
  zone?: string | null;
}

/** An instant, typed on the clocks of the chosen zone. */
export function InstantInput({ value, onChange, zone: own, description, ...rest }: InstantInputProps) {
  const { t } = useTranslation();
  const zone = useZone(own);
  return (
    <TextInput
      {...rest}
      type="datetime-local"
      step={1}
      description={description ?? t("zone.in", { zone })}
      value={value ? localOf(new Date(value), zone) : ""}
      onChange={(event) => onChange(instantAt(event.currentTarget.value, zone)?.toISOString() ?? "")}
    />
  );
}
