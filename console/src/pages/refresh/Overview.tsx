import { Flex, Grid, SimpleGrid, Skeleton, Stack, Text } from "@mantine/core";
import { useTranslation } from "react-i18next";
import type { RefreshOut } from "@/api";
import { ErrorView, Panel } from "@/parts";
import { CoverageRing } from "./Coverage";
import { Figure } from "./Figure";
import { useFreshness } from "./freshness";
import { LastTick } from "./LastTick";

/** How fresh the entities of a job are, and how its last tick went. */
export function Overview({ job, zone }: { job: string; zone: string | null }) {
  const found = useFreshness(job);
  if (found.error) return <ErrorView error={found.error} onRetry={() => void found.refetch()} />;
  return (
    <Grid gap="lg">
      <Grid.Col span={{ base: 12, md: 7 }}>
        <Freshness found={found.data} />
      </Grid.Col>
      <Grid.Col span={{ base: 12, md: 5 }}>{found.data ? <LastTick found={found.data} zone={zone} /> : <Skeleton height={256} />}</Grid.Col>
    </Grid>
  );
}

function Freshness({ found }: { found: RefreshOut | undefined }) {
  const { t, i18n } = useTranslation("refresh");
  const number = new Intl.NumberFormat(i18n.language);
  const told = (value: number | undefined): string | undefined => value === undefined ? undefined : number.format(value);
  return (
    <Panel h="100%">
      <Flex gap="lg" align="center" direction={{ base: "column", xs: "row" }}>
        <Stack gap={0} align="center" w={168}>
          {found ? <CoverageRing found={found} /> : <Skeleton circle height={152} />}
          <Text size="sm" c="dimmed" ta="center">
            {t("coverageIn", { window: found?.window ?? "…" })}
          </Text>
        </Stack>
        <SimpleGrid cols={{ base: 2, xs: 3 }} spacing="md" verticalSpacing="lg" flex={1} w="100%">
          <Figure label={t("entities")} value={told(found?.entities)} />
          <Figure label={t("failed")} value={told(found?.failed)} hint={t("failedHint")} isBad={(found?.failed ?? 0) > 0} />
          <Figure label={t("due")} value={told(found?.due)} hint={t("dueHint")} />
          <Figure label={t("overdue")} value={told(found?.overdue)} hint={t("overdueHint")} isBad={(found?.overdue ?? 0) > 0} />
          <Figure label={t("neverRun")} value={told(found?.neverRun)} />
          <Figure label={t("oldest")} value={found && (found.maxAge ?? "–")} hint={found?.oldest[0]?.key} />
        </SimpleGrid>
      </Flex>
    </Panel>
  );
}
