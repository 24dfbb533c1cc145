import { useQuery } from "@tanstack/react-query";
import { useTranslation } from "react-i18next";

/** The same number of fields decides the dialect as on the server: five are Vixie's, six and seven are Quartz's. */
async function inWords(cron: string, language: string): Promise<string | null> {
  const words = await import("cronstrue/i18n");
  const isQuartz = cron.trim().split(/\s+/).length > 5;
  try {
    return words.default.toString(cron, {
      locale: language === "zh-CN" ? "zh_CN" : "en",
      use24HourTimeFormat: true,
      dayOfWeekStartIndexZero: !isQuartz,
      throwExceptionOnParseError: true,
    });
  } catch {
    return null;
  }
}

/** A cron expression in words; nothing while it has none. What fires when is the server's to say. */
export function CronWords({ cron }: { cron: string }) {
  const { i18n } = useTranslation();
  const words = useQuery({
    queryKey: ["cron words", cron, i18n.language],
    queryFn: () => inWords(cron, i18n.language),
    staleTime: Infinity,
    enabled: cron.trim() !== "",
  });
  return words.data ?? null;
}
