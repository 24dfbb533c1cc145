import { Alert, Button, Group, Modal, Stack, Text } from "@mantine/core";
import { useMutation, useQueryClient } from "@tanstack/react-query";
import { useState } from "react";
import { useTranslation } from "react-i18next";
import { areAllShown, fieldErrors, replaySink, type SinkOut } from "@/api";
import { Act, CopyAs, ErrorView, Icon, InstantInput } from "@/parts";

const HOUR_MS = 3_600_000;

/** Sends a sink all events since a time again, and says how many they are. */
export function ReplayDialog({ sink, onClose }: { sink: SinkOut | null; onClose: () => void }) {
  const { t } = useTranslation("sinks");
  return (
    <Modal opened={sink !== null} onClose={onClose} title={t("replay.title", { name: sink?.name })} size="lg">
      {sink && <Replay name={sink.name} onClose={onClose} />}
    </Modal>
  );
}

function Replay({ name, onClose }: { name: string; onClose: () => void }) {
  const { t } = useTranslation(["sinks", "common"]);
  const queries = useQueryClient();
  const [since, setSince] = useState(() => new Date(Date.now() - HOUR_MS).toISOString());
  const replaying = useMutation({
    mutationFn: () => replaySink(name, { since }),
    onSuccess: () => queries.invalidateQueries({ queryKey: ["sinks"] }),
  });
  return (
    <Stack gap="md">
      <Text size="sm">{t("replay.explain")}</Text>
      <InstantInput label={t("replay.since")} value={since} error={fieldErrors(replaying.error)["since"]} onChange={setSince} required />
      <div aria-live="polite">
        {replaying.data && (
          <Alert color="teal" variant="light" icon={<Icon name="check" />}>
            {t("replay.done", { count: replaying.data.replayed })}
          </Alert>
        )}
      </div>
      {!areAllShown(replaying.error, ["since"]) && <ErrorView error={replaying.error} />}
      <Group justify="space-between">
        <CopyAs recipe={{ method: "POST", path: `/api/v1/sinks/${name}/replay`, body: { since }, cli: `horai sinks replay ${name} --since ${since}` }} />
        <Group gap="xs">
          <Button variant="default" onClick={onClose}>
            {t("common:dialog.close")}
          </Button>
          <Act needs="operator" loading={replaying.isPending} why={since ? null : t("replay.noSince")} onClick={() => replaying.mutate()}>
            {t("replay.confirm")}
          </Act>
        </Group>
      </Group>
    </Stack>
  );
}
