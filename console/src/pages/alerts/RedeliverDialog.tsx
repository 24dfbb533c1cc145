import { Button, Group, Modal, Stack, Text } from "@mantine/core";
import { useQuery, useQueryClient } from "@tanstack/react-query";
import { useTranslation } from "react-i18next";
import { type DeliveryOut, getDeliveries, redeliver } from "@/api";
import { Act, CopyAs, ErrorView, useOnce } from "@/parts";
import { DeliveryResult } from "./DeliveryResult";

const EVERY_MS = 1_000;

/** Sends the message of a delivery again, and follows the new delivery. */
export function RedeliverDialog({ delivery, onClose }: { delivery: DeliveryOut | null; onClose: () => void }) {
  const { t } = useTranslation("alerts");
  return (
    <Modal opened={delivery !== null} onClose={onClose} title={t("redeliver.title")} size="lg">
      {delivery && <Redelivery delivery={delivery} onClose={onClose} />}
    </Modal>
  );
}

function Redelivery({ delivery, onClose }: { delivery: DeliveryOut; onClose: () => void }) {
  const { t } = useTranslation(["alerts", "common"]);
  const queries = useQueryClient();
  const once = useOnce((id: string, headers) => redeliver(id, { headers }));
  const made = once.data;
  const followed = useQuery({
    queryKey: ["alerts", "redelivery", made?.id],
    queryFn: async ({ signal }) => (await getDeliveries({ channel: delivery.channel, limit: 100 }, { signal })).items.find((each) => each.id === made?.id) ?? null,
    enabled: made !== undefined,
    refetchInterval: (query) => (query.state.data && query.state.data.status !== "PENDING" ? false : EVERY_MS),
  });
  const shown = followed.data ?? made;
  const send = (): void =>
    once.mutate(delivery.id, { onSuccess: () => void queries.invalidateQueries({ queryKey: ["alerts", "live"] }) });
  return (
    <Stack gap="md">
      <Text size="sm">{t("redeliver.explain", { channel: delivery.channel })}</Text>
      <div aria-live="polite">{shown && <DeliveryResult delivery={shown} />}</div>
      <ErrorView error={once.error} />
      <Group justify="space-between">
        <CopyAs
          recipe={{ method: "POST", path: `/api/v1/alerts/deliveries/${delivery.id}/redeliver`, isOnce: true, cli: `horai alerts redeliver ${delivery.id}` }}
        />
        <Group gap="xs">
          <Button variant="default" onClick={onClose}>
            {t("common:dialog.close")}
          </Button>
          <Act needs="holds" loading={once.isPending} why={made ? t("redeliver.sent", { id: made.id }) : null} onClick={send}>
            {t("redeliver.act")}
          </Act>
        </Group>
      </Group>
    </Stack>
  );
}
