import type { TextInputProps } from "@mantine/core";
import { useTranslation } from "react-i18next";
import { useToday } from "@/app/clock";
import { useZone } from "@/app/zones";
import { ClockInput } from "./ClockInput";
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
    <ClockInput
      {...rest}
      description={description ?? t("zone.in", { zone })}
      today={useToday(zone)}
      value={value ? localOf(new Date(value), zone) : ""}
      onChange={(local) => onChange(instantAt(local, zone)?.toISOString() ?? "")}
    />
  );
}
