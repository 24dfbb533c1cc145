import { Alert, Group, Skeleton, Stack, Text } from "@mantine/core";
import { useQuery } from "@tanstack/react-query";
import { useTranslation } from "react-i18next";
import { getWhy } from "@/api";
import { ErrorView, Icon, Panel } from "@/parts";

/** Why an instance does not run: everything that is in its way. */
export function Why({ instance }: { instance: string }) {
  const { t } = useTranslation(["instances", "common"]);
  const why = useQuery({
    queryKey: ["instances", instance, "why"],
    queryFn: ({ signal }) => getWhy(instance, { signal }),
  });
  return (
    <Panel title={t("why.title")}>
      <ErrorView error={why.error} />
      {why.isPending && <Skeleton height={44} />}
      {why.data && (
        <Stack gap="xs">
          {why.data.holds.map((hold) => (
            <Alert
              key={hold.kind}
              variant="light"
              color={why.data.verdict === "HELD" ? "orange" : "gray"}
              icon={<Icon name={hold.kind === "NOT_DUE" ? "instances" : "lock"} />}
              title={t(`why.hold.${hold.kind}`)}
            >
              <Text size="sm">{hold.detail}</Text>
            </Alert>
          ))}
          {why.data.holds.length === 0 && (
            <Group gap="xs">
              <Icon name="info" />
              <Text size="sm">{t(`why.verdict.${why.data.verdict}`)}</Text>
            </Group>
          )}
        </Stack>
      )}
    </Panel>
  );
}
