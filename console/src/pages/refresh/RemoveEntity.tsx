import { useQueryClient } from "@tanstack/react-query";
import { useTranslation } from "react-i18next";
import { deleteEntity, type JobOut } from "@/api";
import { ConfirmDialog } from "@/parts";
import { quoted } from "@/parts/recipes";
import { entityPath } from "./paths";

/** Takes an entity out of a job's round. */
export function RemoveEntity({ job, entity, onClose }: { job: JobOut; entity: string; onClose: () => void }) {
  const { t } = useTranslation("refresh");
  const queries = useQueryClient();
  return (
    <ConfirmDialog
      opened
      isDangerous
      onClose={onClose}
      title={t("remove.title")}
      confirm={t("remove.act")}
      recipe={{ method: "DELETE", path: entityPath(job.name, entity), cli: `horai entities remove ${job.name} ${quoted(entity)}` }}
      onConfirm={async () => {
        await deleteEntity(job.id, entity);
        await queries.invalidateQueries({ queryKey: ["refresh"] });
      }}
    >
      <span style={{ overflowWrap: "anywhere" }}>{t("remove.explain", { key: entity })}</span>
    </ConfirmDialog>
  );
}
