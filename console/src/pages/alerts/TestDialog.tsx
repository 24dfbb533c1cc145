import { Button, Group, Modal, Stack, Text } from "@mantine/core";
import { useMutation, useQueryClient } from "@tanstack/react-query";
import { useTranslation } from "react-i18next";
import { type ChannelOut, testChannel } from "@/api";
import { Act, CopyAs, ErrorView } from "@/parts";
import { DeliveryResult } from "./DeliveryResult";

/** Sends one test message to a channel, and shows the real result. */
export function TestDialog({ channel, onClose }: { channel: Pick<ChannelOut, "name"> | null; onClose: () => void }) {
  const { t } = useTranslation("alerts");
  return (
    <Modal opened={channel !== null} onClose={onClose} title={t("test.title", { name: channel?.name })} size="lg">
      {channel && <Test name={channel.name} onClose={onClose} />}
    </Modal>
  );
}

function Test({ name, onClose }: { name: string; onClose: () => void }) {
  const { t } = useTranslation(["alerts", "common"]);
  const queries = useQueryClient();
  const calling = useMutation({
    mutationFn: () => testChannel(name),
    onSuccess: () => queries.invalidateQueries({ queryKey: ["alerts", "live"] }),
  });
  return (
    <Stack gap="md">
      <Text size="sm">{t("test.explain")}</Text>
      <div aria-live="polite">{calling.data && !calling.isPending && <DeliveryResult delivery={calling.data} />}</div>
      <ErrorView error={calling.error} />
      <Group justify="space-between">
        <CopyAs recipe={{ method: "POST", path: `/api/v1/alerts/channels/${name}/test`, cli: `horai alerts test ${name}` }} />
        <Group gap="xs">
          <Button variant="default" onClick={onClose}>
            {t("common:dialog.close")}
          </Button>
          <Act needs="holds" loading={calling.isPending} onClick={() => calling.mutate()}>
            {t("test.act")}
          </Act>
        </Group>
      </Group>
    </Stack>
  );
}
