import { Group, Skeleton, Stack, Text } from "@mantine/core";
import { useQuery } from "@tanstack/react-query";
import { useTranslation } from "react-i18next";
import { getWhy } from "@/api";
import { ErrorView, Icon, NamedInstances, Panel, useSaid } from "@/parts";
import classes from "./Why.module.css";

/** Why an instance does not run: everything that is in its way. */
export function Why({ instance }: { instance: string }) {
  const { t } = useTranslation(["instances", "common"]);
  const say = useSaid();
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
            <div key={hold.kind} className={classes.hold} data-held={hold.kind === "NOT_DUE" ? undefined : true}>
              <Icon name={hold.kind === "NOT_DUE" ? "instances" : "lock"} />
              <Text size="sm" fw={600}>
                {t(`why.hold.${hold.kind}`)}
              </Text>
              <Text size="sm" c="dimmed" className={classes.detail}>
                {say(hold.detailSaid)}
              </Text>
              <div className={classes.detail}>
                <NamedInstances said={hold.detailSaid} own={instance} />
              </div>
            </div>
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
