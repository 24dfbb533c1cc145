import { Alert, Text } from "@mantine/core";
import { useTranslation } from "react-i18next";
import type { DeliveryOut } from "@/api";
import { Icon } from "@/parts";

const LOOKS = {
  PENDING: { color: "blue", icon: "info", title: "test.pending" },
  DELIVERED: { color: "teal", icon: "check", title: "test.delivered" },
  FAILED: { color: "red", icon: "warning", title: "test.failed" },
} as const;

/** The real answer of the channel to a message. */
export function DeliveryResult({ delivery }: { delivery: DeliveryOut }) {
  const { t } = useTranslation("alerts");
  const look = LOOKS[delivery.status];
  return (
    <Alert color={look.color} variant="light" icon={<Icon name={look.icon} />} title={t(look.title)}>
      {delivery.httpStatus !== null && <Text size="sm">{t("test.status", { status: delivery.httpStatus })}</Text>}
      {delivery.error && <Text size="sm">{delivery.error}</Text>}
    </Alert>
  );
}
