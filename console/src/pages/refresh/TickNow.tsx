import { useQueryClient } from "@tanstack/react-query";
import { useState } from "react";
import { useTranslation } from "react-i18next";
import { type JobOut, trigger } from "@/api";
import { Act, ConfirmDialog, Icon, useOnce } from "@/parts";

/** Looks now which entities are due, and loads them; does not wait for the next tick. */
export function TickNow({ job }: { job: JobOut }) {
  const { t } = useTranslation("refresh");
  const queries = useQueryClient();
  const [isAsked, ask] = useState(false);
  const once = useOnce((_: object, headers) => trigger(job.id, {}, { headers }));
  return (
    <>
      <Act onClick={() => ask(true)} leftSection={<Icon name="play" size={16} />}>
        {t("tick.act")}
      </Act>
      <ConfirmDialog
        opened={isAsked}
        onClose={() => ask(false)}
        title={t("tick.title", { job: job.name })}
        confirm={t("tick.act")}
        recipe={{ method: "POST", path: `/api/v1/jobs/${encodeURIComponent(job.name)}/trigger`, isOnce: true, cli: `horai jobs trigger ${job.name}` }}
        onConfirm={async () => {
          await once.mutateAsync({});
          await queries.invalidateQueries({ queryKey: ["refresh"] });
        }}
      >
        {t(job.status === "PAUSED" ? "tick.paused" : "tick.explain")}
      </ConfirmDialog>
    </>
  );
}
