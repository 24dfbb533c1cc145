import { Button, Menu, Text } from "@mantine/core";
import { useMutation, useQueryClient } from "@tanstack/react-query";
import { useTranslation } from "react-i18next";
import { type GrantOut, signOut, switchTenant } from "@/api";
import { announceSwitch, SESSION, useSession } from "@/live";
import { clearDrafts } from "@/parts/drafts";
import { Icon } from "@/parts/Icon";

/** The key or the user of the session, its role, the other tenants of a user, and the way out. A server without keys has no session. */
export function Account() {
  const { t } = useTranslation();
  const session = useSession().data;
  const queries = useQueryClient();
  const leaving = useMutation({
    mutationFn: () => signOut(),
    onSuccess: () => {
      clearDrafts();
      return queries.resetQueries({ queryKey: SESSION });
    },
  });
  const switching = useMutation({
    mutationFn: (grant: GrantOut) => switchTenant({ tenant: grant.tenant }),
    onSuccess: () => announceSwitch(),
  });
  if (!session || session.keyless) {
    return null;
  }
  const name = session.tenant ?? t("session.platform");
  const others = session.grants.filter((grant) => grant.tenant !== session.tenant);
  return (
    <Menu position="bottom-end" withInitialFocusPlaceholder={false}>
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
        {others.length > 0 && (
          <>
            <Menu.Divider />
            <Menu.Label>{t("session.tenants")}</Menu.Label>
            {others.map((grant) => (
              <Menu.Item key={grant.tenant ?? ""} disabled={switching.isPending} onClick={() => switching.mutate(grant)}>
                {t("session.option", { name: grant.tenant ?? t("session.platform"), role: grant.role })}
              </Menu.Item>
            ))}
            <Menu.Divider />
          </>
        )}
        <Menu.Item onClick={() => leaving.mutate()}>{t("session.leave")}</Menu.Item>
      </Menu.Dropdown>
    </Menu>
  );
}
