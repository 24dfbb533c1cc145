import { Group, Modal, Stack, Text, Textarea } from "@mantine/core";
import { useMutation, useQuery, useQueryClient } from "@tanstack/react-query";
import { useTranslation } from "react-i18next";
import { addIncidentNote, closeIncident, getIncident, type IncidentDetail, type IncidentEntryOut } from "@/api";
import { Act, CopyAs, ErrorView, useDraft, When } from "@/parts";
import { Restored } from "@/parts/Restored";
import { closing, noting } from "./recipes";

/** One incident with its timeline: a note is added, or the incident is closed. */
export function Incident({ id, onClose }: { id: string | null; onClose: () => void }) {
  const { t } = useTranslation("incidents");
  const incident = useQuery({ queryKey: ["incidents", id], queryFn: ({ signal }) => getIncident(id ?? "", { signal }), enabled: id !== null });
  return (
    <Modal opened={id !== null} onClose={onClose} title={incident.data?.title ?? t("timeline.act")} size="lg">
      <ErrorView error={incident.error} onRetry={() => void incident.refetch()} />
      {incident.data && <Timeline incident={incident.data} />}
    </Modal>
  );
}

function Timeline({ incident }: { incident: IncidentDetail }) {
  const { t } = useTranslation("incidents");
  const queries = useQueryClient();
  const kept = useDraft(`incident ${incident.id}`, { note: "" });
  const { note } = kept.draft;
  const acting = useMutation({
    mutationFn: (act: "note" | "close") =>
      act === "note" ? addIncidentNote(incident.id, { note }) : closeIncident(incident.id, note ? { note } : {}),
    onSuccess: async () => {
      kept.discard();
      await queries.invalidateQueries({ queryKey: ["incidents"] });
    },
  });
  const isClosed = incident.closedAt !== null;
  return (
    <Stack gap="md">
      <Stack gap="xs" component="ol" m={0} p={0}>
        {incident.timeline.map((entry) => (
          <Entry key={`${entry.at} ${entry.kind}`} entry={entry} />
        ))}
      </Stack>
      <Restored draft={kept} />
      <Textarea label={t("note")} value={note} maxLength={2_000} onChange={(event) => kept.change({ note: event.currentTarget.value })} />
      <ErrorView error={acting.error} />
      <Group gap="xs" justify="flex-end">
        {!isClosed && <CopyAs recipe={closing(incident.id, note.trim())} of={t("close")} />}
        {note.trim() && <CopyAs recipe={noting(incident.id, note.trim())} of={t("addNote")} />}
        <Act needs="platform" variant="default" loading={acting.isPending} why={note.trim() ? null : t("noNote")} onClick={() => acting.mutate("note")}>
          {t("addNote")}
        </Act>
        <Act needs="platform" loading={acting.isPending} why={isClosed ? t("isClosed") : null} onClick={() => acting.mutate("close")}>
          {t("close")}
        </Act>
      </Group>
    </Stack>
  );
}

function Entry({ entry }: { entry: IncidentEntryOut }) {
  const { t } = useTranslation("incidents");
  const level = typeof entry.data?.["level"] === "number" ? entry.data["level"] : null;
  return (
    <Text component="li" size="sm" style={{ listStyle: "none" }}>
      <When at={entry.at} /> · {t(`kind.${entry.kind}`)} · {entry.actor || t("noName")}
      {level !== null && ` · ${t("level", { level })}`}
      {entry.note && ` · ${entry.note}`}
    </Text>
  );
}
