import { Spotlight, spotlight, type SpotlightActionData, type SpotlightActionGroupData } from "@mantine/spotlight";
import { useDebouncedValue } from "@mantine/hooks";
import { useQuery } from "@tanstack/react-query";
import { useNavigate } from "@tanstack/react-router";
import { useState } from "react";
import { useTranslation } from "react-i18next";
import { getSearch } from "@/api";
import { Icon } from "@/parts/Icon";
import { StateMark } from "@/parts/StateChip";
import { MAKERS, PAGES } from "./pages";

export const openSearch = spotlight.open;
export const SEARCH_KEY = /mac/i.test(navigator.userAgent) ? "⌘K" : "Ctrl K";

/** ⌘K: pages, what can be made, jobs and workflows by name, instances by id or key. */
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
  const makers = MAKERS.map(
    (maker): SpotlightActionData => ({
      id: `make ${maker.name}`,
      label: t(`make.${maker.name}`),
      leftSection: <Icon name="plus" />,
      onClick: go(maker.path),
    }),
  );
  const found = useFound(query, go);
  const groups: SpotlightActionGroupData[] = [
    { group: t("search.pages"), actions: pages },
    { group: t("keys.make"), actions: makers },
    ...found,
  ];
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
      attributes={{ content: { "aria-label": t("search.placeholder") } }}
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
  const { data } = useQuery({
    queryKey: ["search", asked],
    queryFn: ({ signal }) => getSearch({ q: asked }, { signal }),
    enabled: asked !== "" && asked.length <= 200,
  });
  if (!data) return [];
  const jobs = data.jobs.map((job) => ({
    id: `job ${job.id}`,
    label: job.name,
    leftSection: <Icon name="jobs" />,
    onClick: go(`/jobs/${encodeURIComponent(job.name)}`),
  }));
  const workflows = data.workflows.map((workflow) => ({
    id: `workflow ${workflow.id}`,
    label: workflow.name,
    leftSection: <Icon name="workflows" />,
    onClick: go(`/workflows/${encodeURIComponent(workflow.name)}`),
  }));
  const instances = data.instances.map((instance) => ({
    id: `instance ${instance.id}`,
    label: instance.key ?? instance.id,
    description: `${instance.job} · ${instance.id} · ${t(`state.${instance.state}`)}`,
    keywords: [instance.id, query],
    leftSection: <StateMark state={instance.state} />,
    onClick: go(`/instances/${instance.id}`),
  }));
  return [
    { group: t("page.jobs"), actions: jobs },
    { group: t("page.workflows"), actions: workflows },
    { group: t("page.instances"), actions: instances },
  ].filter((group) => group.actions.length > 0);
}
