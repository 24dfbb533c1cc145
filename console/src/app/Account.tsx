import { Button, Menu, Text } from "@mantine/core";
import { useMutation, useQueryClient } from "@tanstack/react-query";
import { useTranslation } from "react-i18next";
import { signOut } from "@/api";
import { SESSION, useSession } from "@/live";
import { Icon } from "@/parts/Icon";

/** The key of the session, its role, and the way out. A server without keys has no session. */
export function Account() {
  const { t } = useTranslation();
  const session = useSession().data;
  const queries = useQueryClient();
  const leaving = useMutation({
    mutationFn: () => signOut(),
    onSuccess: () => queries.resetQueries({ queryKey: SESSION }),
  });
  if (!session || session.keyless) {
    return null;
  }
  const name = session.tenant ?? t("session.platform");
  return (
    <Menu position="bottom-end">
      <Menu.Target>
        <Button variant="subtle" color="gray" px="xs" fw={500} leftSection={<Icon name="lock" />} aria-label={t("session.account", { name })}>
          {name}
        </Button>
      </Menu.Target>
      <Menu.Dropdown>
        <Menu.Label>
          <Text size="sm">{session.name}</Text>
          <Text size="xs" c="dimmed">
            {t("session.role", { role: session.role })}
          </Text>
        </Menu.Label>
        <Menu.Item onClick={() => leaving.mutate()}>{t("session.leave")}</Menu.Item>
      </Menu.Dropdown>
    </Menu>
  );
}
