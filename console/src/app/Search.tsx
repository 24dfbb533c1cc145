import { Spotlight, spotlight, type SpotlightActionData, type SpotlightActionGroupData } from "@mantine/spotlight";
import { useDebouncedValue } from "@mantine/hooks";
import { useQuery } from "@tanstack/react-query";
import { useNavigate } from "@tanstack/react-router";
import { useState } from "react";
import { useTranslation } from "react-i18next";
import { getInstances, getJobs } from "@/api";
import { Icon } from "@/parts/Icon";
import { PAGES } from "./pages";

export const openSearch = spotlight.open;

/** ⌘K: pages by name, jobs by name, instances by id or key. */
export function Search() {
  const { t } = useTranslation();
  const navigate = useNavigate();
  const [query, setQuery] = useState("");
  const go = (href: string) => () => void navigate({ href });
  const pages = PAGES.map(
    (page): SpotlightActionData => ({
      id: `page ${page.name}`,
      label: t(`page.${page.name}`),
      leftSection: <Icon name={page.icon} />,
      onClick: go(page.path),
    }),
  );
  const found = useFound(query, go);
  const groups: SpotlightActionGroupData[] = [{ group: t("search.pages"), actions: pages }, ...found];
  return (
    <Spotlight
      actions={groups}
      query={query}
      onQueryChange={setQuery}
      shortcut={["mod + K", "/"]}
      highlightQuery
      scrollable
      maxHeight={420}
      overlayProps={{ blur: 2, backgroundOpacity: 0.35 }}
      nothingFound={t("search.nothing")}
      searchProps={{
        leftSection: <Icon name="search" />,
        placeholder: t("search.placeholder"),
        "aria-label": t("search.placeholder"),
      }}
    />
  );
}

function useFound(query: string, go: (href: string) => () => void): SpotlightActionGroupData[] {
  const { t } = useTranslation();
  const [asked] = useDebouncedValue(query.trim(), 200);
  const jobs = useQuery({
    queryKey: ["jobs", "search", asked],
    queryFn: ({ signal }) => getJobs({ name: asked, limit: 8 }, { signal }),
    enabled: asked !== "",
  });
  const instances = useQuery({
    queryKey: ["instances", "search", asked],
    queryFn: ({ signal }) => getInstances({ key: asked, limit: 8 }, { signal }),
    enabled: asked !== "",
  });
  if (asked === "") return [];
  const named = (jobs.data?.items ?? []).map((job) => ({
    id: `job ${job.id}`,
    label: job.name,
    leftSection: <Icon name="jobs" />,
    onClick: go(`/jobs/${encodeURIComponent(job.name)}`),
  }));
  const keyed = (instances.data?.items ?? []).map((instance) => ({
    id: `instance ${instance.id}`,
    label: instance.key ?? instance.id,
    description: `${instance.job} · ${instance.id}`,
    leftSection: <Icon name="instances" />,
    onClick: go(`/instances/${instance.id}`),
  }));
  const byId = /^\d{1,18}$/.test(asked)
    ? [
        {
          id: `id ${asked}`,
          label: t("search.instance", { id: asked }),
          leftSection: <Icon name="instances" />,
          onClick: go(`/instances/${asked}`),
        },
      ]
    : [];
  return [
    { group: t("page.jobs"), actions: named },
    { group: t("page.instances"), actions: [...byId, ...keyed] },
  ].filter((group) => group.actions.length > 0);
}
