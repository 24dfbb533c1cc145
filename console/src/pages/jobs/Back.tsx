import { useTranslation } from "react-i18next";
import { Crumb, Go } from "@/parts";

/** The way back: to the list, or to the job. */
export function Back({ job }: { job?: string }) {
  const { t } = useTranslation();
  return (
    <Crumb>
      {job ? (
        <Go to="/jobs/$job" params={{ job }} inherit>
          {job}
        </Go>
      ) : (
        <Go to="/jobs" inherit>
          {t("page.jobs")}
        </Go>
      )}
    </Crumb>
  );
}
