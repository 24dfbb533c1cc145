import { Alert, Button, Center, Divider, Group, Paper, PasswordInput, Stack, Text, Title } from "@mantine/core";
import { useMutation, useQuery, useQueryClient } from "@tanstack/react-query";
import { useState } from "react";
import { useTranslation } from "react-i18next";
import { getSignInOptions, signIn } from "@/api";
import { SESSION } from "@/live";
import { ErrorView } from "@/parts/ErrorView";
import { LanguageSwitch } from "./LanguageSwitch";

const REFUSALS = ["SIGN_IN_UNKNOWN", "SIGN_IN_DENIED", "SIGN_IN_UNPROVEN", "NO_MAPPED_GROUP", "PROVIDER_AWAY", "TOO_MANY_SIGN_INS", "NO_PROVIDER"] as const;

/** Asks for a key, and exchanges it for a session that no script can read; or leads to the identity provider. */
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
          noValidate
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
            <WithProvider />
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

/** The way to the identity provider, if the server has one, and the reason why a sign-in there did not succeed. */
function WithProvider() {
  const { t } = useTranslation();
  const options = useQuery({ queryKey: ["session", "options"], queryFn: ({ signal }) => getSignInOptions({ signal }), staleTime: 60_000 });
  const here = new URL(window.location.href);
  const refusal = REFUSALS.find((code) => code === here.searchParams.get("signIn"));
  here.searchParams.delete("signIn");
  const provider = options.data?.provider;
  return (
    <>
      {refusal && (
        <Alert color="red" variant="light" title={t("session.notSignedIn")} role="alert">
          {t(`session.refused.${refusal}`)}
        </Alert>
      )}
      {provider && (
        <>
          <Button component="a" href={`/api/v1/session/oidc?returnTo=${encodeURIComponent(here.pathname + here.search)}`}>
            {t("session.provider", { provider })}
          </Button>
          <Divider label={t("session.or")} />
        </>
      )}
    </>
  );
}
