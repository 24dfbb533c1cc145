import { TextInput } from "@mantine/core";
import { useTranslation } from "react-i18next";

interface RateInputProps {
  value: string;
  onChange: (value: string) => void;
  error: string | undefined;
  /** How starts are spread, and what an empty field means. */
  hint: string;
}

/** The rate at which a bulk change starts instances. */
export function RateInput({ value, onChange, error, hint }: RateInputProps) {
  const { t } = useTranslation();
  return <TextInput label={t("bulk.rate")} description={hint} placeholder="10/s" value={value} onChange={(event) => onChange(event.currentTarget.value)} error={error} />;
}
