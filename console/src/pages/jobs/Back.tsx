import { useTranslation } from "react-i18next";
import { Go } from "@/parts";

/** The way back: to the list, or to the job. */
export function Back({ job }: { job?: string }) {
  const { t } = useTranslation();
  return job ? (
    <Go to="/jobs/$job" params={{ job }} size="sm">
      {job}
    </Go>
  ) : (
    <Go to="/jobs" size="sm">
      {t("page.jobs")}
    </Go>
  );
}
