import { useQueryClient } from "@tanstack/react-query";
import { useTranslation } from "react-i18next";
import { acknowledgeAlert, type AlertOut } from "@/api";
import { ConfirmDialog } from "@/parts";

/** Acknowledges an alert: its repeats stop until it is resolved or gets worse. */
export function AcknowledgeDialog({ alert, onClose }: { alert: AlertOut | null; onClose: () => void }) {
  const { t } = useTranslation("alerts");
  const queries = useQueryClient();
  const id = alert?.id ?? "";
  return (
    <ConfirmDialog
      opened={alert !== null}
      onClose={onClose}
      title={t("acknowledge.title", { rule: alert?.rule })}
      confirm={t("acknowledge.act")}
      needs="holds"
      note={{ label: t("note") }}
      recipe={{ method: "POST", path: `/api/v1/alerts/${id}/acknowledge`, cli: `horai alerts acknowledge ${id}` }}
      onConfirm={async (note) => {
        await acknowledgeAlert(id, note === "" ? {} : { note });
        await queries.invalidateQueries({ queryKey: ["alerts"] });
      }}
    >
      {t("acknowledge.explain")}
    </ConfirmDialog>
  );
}
