import { Alert, Button, Group, Text } from "@mantine/core";
import { useTranslation } from "react-i18next";
import { Icon } from "./Icon";

/** Says that a form is filled with a draft of an earlier visit, and offers to discard it. */
export function Restored({ draft }: { draft: { isRestored: boolean; discard: () => void } }) {
  const { t } = useTranslation();
  if (!draft.isRestored) return null;
  return (
    <Alert color="gray" icon={<Icon name="info" />} p="xs" role="note">
      <Group justify="space-between" gap="xs">
        <Text size="sm">{t("draft.restored")}</Text>
        <Button size="compact-sm" variant="default" onClick={draft.discard}>
          {t("draft.discard")}
        </Button>
      </Group>
    </Alert>
  );
}
