import { Badge, Code, Group, SimpleGrid, Skeleton, Stack, Text } from "@mantine/core";
import { useQuery } from "@tanstack/react-query";
import { useParams } from "@tanstack/react-router";
import { useTranslation } from "react-i18next";
import { getLetter, type LetterDetail } from "@/api";
import { JobZone } from "@/app/zones";
import { Crumb, ErrorView, Facts, FaultMeaning, Go, JsonView, Page, Panel, Trace, When } from "@/parts";
import { LetterActions } from "./LetterActions";
import { StatusBadge } from "./StatusBadge";

export default function LetterPage() {
  const { t } = useTranslation(["dead-letters", "common"]);
  const { letter: id } = useParams({ from: "/dead-letters/$letter" });
  const found = useQuery({ queryKey: ["dead-letters", id], queryFn: ({ signal }) => getLetter(id, { signal }) });
  const letter = found.data;
  return (
    <Page
      title={letter?.key ?? t("letter.title", { id })}
      above={
        <Crumb>
          <Go to="/dead-letters">{t("common:page.dead-letters")}</Go>
        </Crumb>
      }
      lead={letter && <Lead letter={letter} />}
      actions={letter && <LetterActions letter={letter} />}
    >
      <ErrorView error={found.error} onRetry={() => void found.refetch()} />
      {found.isPending && <Skeleton height={240} />}
      {letter && (
        <JobZone value={letter.timezone}>
          <Body letter={letter} />
        </JobZone>
      )}
    </Page>
  );
}

function Lead({ letter }: { letter: LetterDetail }) {
  return (
    <Group gap="sm" component="span" display="inline-flex">
      <StatusBadge status={letter.replayStatus} />
      <Go to="/jobs/$job" params={{ job: letter.job }} inherit>
        {letter.job}
      </Go>
    </Group>
  );
}

function Body({ letter }: { letter: LetterDetail }) {
  const { t } = useTranslation(["dead-letters", "common"]);
  return (
    <SimpleGrid cols={{ base: 1, lg: 2 }} spacing="lg">
      <Stack gap="lg">
        <Panel title={t("column.error")} aside={<Code>{letter.errorCode}</Code>}>
          <FaultMeaning code={letter.errorCode} />
          <Trace text={letter.errorMsg ?? letter.errorCode} />
        </Panel>
        <Panel title={t("letter.payload")}>
          {letter.instance ? (
            <JsonView value={letter.instance.payload} />
          ) : (
            <Text size="sm" c="dimmed">
              {t("letter.gone")}
            </Text>
          )}
        </Panel>
      </Stack>
      <Panel title={t("letter.about")} fz="sm">
        <About letter={letter} />
      </Panel>
    </SimpleGrid>
  );
}

function About({ letter }: { letter: LetterDetail }) {
  const { t } = useTranslation(["dead-letters", "common"]);
  const reason = letter.reason && <bdi>{letter.reason}</bdi>;
  const same = letter.fingerprint && (
    <Go to="/dead-letters" search={{ fingerprint: letter.fingerprint, status: "all" }} inherit>
      {t("letter.same")}
    </Go>
  );
  return (
    <Facts
      items={[
        [t("column.at"), <When key="at" at={letter.createdAt} as="both" />],
        [t("letter.instance"), letter.instance ? <Instance key="instance" id={letter.instanceId} /> : `#${letter.instanceId}`],
        [t("letter.attempts"), letter.instance?.attempt],
        [t("letter.replayedAs"), letter.replayedAs && <Instance key="replay" id={letter.replayedAs} />],
        [t("letter.reason"), reason],
        [t("letter.changed"), letter.changedAt && <When key="changed" at={letter.changedAt} />],
        [t("letter.tags"), letter.tags.length > 0 && <Tags key="tags" tags={letter.tags} />],
        [t("filter.fingerprint"), same],
      ]}
    />
  );
}

function Instance({ id }: { id: string }) {
  return (
    <Go to="/instances/$instance" params={{ instance: id }} inherit>
      {`#${id}`}
    </Go>
  );
}

function Tags({ tags }: { tags: readonly string[] }) {
  return (
    <Group gap={4}>
      {tags.map((tag) => (
        <Badge key={tag} variant="default" tt="none" fw={500}>
          <bdi>{tag}</bdi>
        </Badge>
      ))}
    </Group>
  );
}
