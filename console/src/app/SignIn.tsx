import { Button, Center, Group, Paper, PasswordInput, Stack, Text, Title } from "@mantine/core";
import { useMutation, useQueryClient } from "@tanstack/react-query";
import { useState } from "react";
import { useTranslation } from "react-i18next";
import { signIn } from "@/api";
import { SESSION } from "@/live";
import { ErrorView } from "@/parts/ErrorView";
import { LanguageSwitch } from "./LanguageSwitch";

/** Asks for a key, and exchanges it for a session that no script can read. */
export function SignIn() {
  const { t } = useTranslation();
  const [key, setKey] = useState("");
  const queries = useQueryClient();
  const entering = useMutation({
    mutationFn: () => signIn({ key: key.trim() }),
    onSuccess: (session) => {
      queries.removeQueries({ predicate: (query) => query.queryKey[0] !== SESSION[0] }); // of an earlier session
      queries.setQueryData(SESSION, session);
    },
  });
  return (
    <Center mih="100vh" p="md">
      <Paper withBorder radius="md" p="xl" w="100%" maw={420}>
        <form
          onSubmit={(event) => {
            event.preventDefault();
            entering.mutate();
          }}
        >
          <Stack gap="md">
            <Group justify="space-between" wrap="nowrap">
              <Group gap="sm" wrap="nowrap">
                <img src="/icon.svg" width={28} height={28} alt="" />
                <Title order={1} fz={20}>
                  {t("session.title")}
                </Title>
              </Group>
              <LanguageSwitch />
            </Group>
            <Text size="sm" c="dimmed">
              {t("session.lead")}
            </Text>
            <PasswordInput
              label={t("session.key")}
              placeholder="hk_…"
              value={key}
              onChange={(event) => setKey(event.currentTarget.value)}
              autoComplete="current-password"
              required
              data-autofocus
            />
            <ErrorView error={entering.error} />
            <Button type="submit" loading={entering.isPending} disabled={key.trim() === ""}>
              {t("session.enter")}
            </Button>
          </Stack>
        </form>
      </Paper>
    </Center>
  );
}
