import { useTranslation } from "react-i18next";

/** Writes seconds with two digits, as the reports do. */
export function useSeconds(): (seconds: number) => string {
  const { t, i18n } = useTranslation("drills");
  const number = new Intl.NumberFormat(i18n.language, { minimumFractionDigits: 2, maximumFractionDigits: 2 });
  return (seconds) => t("seconds", { seconds: number.format(seconds) });
}
