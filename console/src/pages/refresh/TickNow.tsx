import { useQueryClient } from "@tanstack/react-query";
import { useState } from "react";
import { useTranslation } from "react-i18next";
import { type JobOut, trigger } from "@/api";
import { Act, ConfirmDialog, Icon, useOnce } from "@/parts";

type Ticked = Pick<JobOut, "id" | "name" | "status">;

/** Looks now which entities are due, and loads them; does not wait for the next tick. */
export function TickNow({ job }: { job: Ticked }) {
  const { t } = useTranslation("refresh");
  const [isAsked, ask] = useState(false);
  return (
    <>
      <Act onClick={() => ask(true)} leftSection={<Icon name="play" size={16} />}>
        {t("tick.act")}
      </Act>
      <TickDialog job={job} opened={isAsked} onClose={() => ask(false)} />
    </>
  );
}

/** Asks before a refresh job ticks by hand. */
export function TickDialog({ job, opened, onClose }: { job: Ticked; opened: boolean; onClose: () => void }) {
  const { t } = useTranslation("refresh");
  const queries = useQueryClient();
  const once = useOnce((_: object, headers) => trigger(job.id, {}, { headers }));
  return (
    <ConfirmDialog
      opened={opened}
      onClose={onClose}
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
  );
}
