import { Alert, Group, Select, Skeleton } from "@mantine/core";
import { useQuery } from "@tanstack/react-query";
import { useParams } from "@tanstack/react-router";
import { useTranslation } from "react-i18next";
import { type AttemptOut, getInstance, type InstanceOut } from "@/api";
import { Crumb, ErrorView, Go, Page, StateChip, Trace, useFilters } from "@/parts";
import { LogOf } from "./Log";
import { LEVELS, type LogView } from "./logLines";

/** The log of an instance on a page of its own: the attempt, the search, the level and the rest are in the address. */
export default function LogPage() {
  const { t } = useTranslation(["instances", "common"]);
  const { instance: id } = useParams({ from: "/instances/$instance/log" });
  const found = useQuery({ queryKey: ["instances", id], queryFn: ({ signal }) => getInstance(id, { signal }) });
  return (
    <Page
      title={t("log.title", { id })}
      above={
        <Crumb>
          <Go to="/instances" size="sm">{t("common:page.instances")}</Go>
          {" / "}
          <Go to="/instances/$instance" params={{ instance: id }} size="sm">
            {found.data?.key ?? id}
          </Go>
        </Crumb>
      }
      lead={found.data && <StateChip state={found.data.state} />}
    >
      <ErrorView error={found.error} onRetry={() => void found.refetch()} />
      {found.isPending && <Skeleton height={480} />}
      {found.data && <Attempt instance={found.data} />}
    </Page>
  );
}

function Attempt({ instance }: { instance: InstanceOut }) {
  const { t } = useTranslation("instances");
  const [filters, change] = useFilters(["attempt", "q", "level", "wrap", "follow"]);
  const attempts = instance.attempts ?? [];
  const wanted = attempts.findLast((attempt) => placeOf(attempt) === filters.attempt) ?? attempts.findLast((attempt) => attempt.log.length > 0) ?? attempts.at(-1);
  if (!wanted) return <Alert color="gray">{t("log.none")}</Alert>;
  const view: LogView = {
    text: filters.q ?? "",
    level: LEVELS.find((level) => level === filters.level) ?? "DEBUG",
    isWrapped: filters.wrap !== "no",
    isFollowed: filters.follow !== "no",
  };
  const onChange = (wish: Partial<LogView>): void => {
    const next = { ...view, ...wish };
    change({ q: next.text, level: next.level === "DEBUG" ? undefined : next.level, wrap: next.isWrapped ? undefined : "no", follow: next.isFollowed ? undefined : "no" });
  };
  return (
    <>
      <Group align="flex-end">
        <Select
          label={t("attempts.number")}
          w={220}
          data={attempts.map((attempt) => ({ value: placeOf(attempt), label: t("log.attempt", { number: attempt.attempt, lines: attempt.log.length }) }))}
          value={placeOf(wanted)}
          allowDeselect={false}
          onChange={(attempt) => attempt && change({ attempt })}
        />
      </Group>
      {wanted.errorMsg && <Trace text={wanted.errorMsg} />}
      <LogOf lines={wanted.log} name={`${instance.id}-${wanted.attempt}`} view={view} onChange={onChange} isFull />
    </>
  );
}

/** An attempt by its fence: a late result has the number and the fence of an attempt that is listed as well. */
function placeOf(attempt: AttemptOut): string {
  return `${attempt.fence}${attempt.late ? "-late" : ""}`;
}
