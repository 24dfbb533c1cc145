import "@mantine/spotlight/styles.css";
import { createSpotlight, Spotlight, type SpotlightActionData, type SpotlightActionGroupData } from "@mantine/spotlight";
import { useDebouncedValue } from "@mantine/hooks";
import { useQuery } from "@tanstack/react-query";
import { useNavigate } from "@tanstack/react-router";
import { type KeyboardEvent, useEffect, useRef, useState } from "react";
import { useTranslation } from "react-i18next";
import { getSearch } from "@/api";
import { useMay, useSession } from "@/live";
import { Icon } from "@/parts/Icon";
import { StateMark } from "@/parts/StateChip";
import { isOpenTo, MAKERS, PAGES } from "./pages";
import { actsOn, type PaletteVerb, readQuery, VERBS } from "./palette";

const [store, palette] = createSpotlight();
export const openSearch = palette.open;

const ICONS = { pause: "pause", resume: "right", run: "play", replay: "replay" } as const;

/** ⌘K: pages, what can be made, jobs and workflows by name, instances by id or key, and what can be done with them. */
export function Search() {
  const { t } = useTranslation();
  const navigate = useNavigate();
  const session = useSession().data;
  const may = useMay();
  const [query, setQuery] = useState("");
  const go = (href: string) => () => void navigate({ href });
  const pages = PAGES.filter((page) => isOpenTo(page, session)).map(
    (page): SpotlightActionData => ({
      id: `page ${page.name}`,
      label: t(`page.${page.name}`),
      leftSection: <Icon name={page.icon} />,
      onClick: go(page.path),
    }),
  );
  const makers = MAKERS.filter((maker) => may(maker.needs)).map(
    (maker): SpotlightActionData => ({
      id: `make ${maker.name}`,
      label: t(`make.${maker.name}`),
      leftSection: <Icon name="plus" />,
      onClick: go(maker.path),
    }),
  );
  const { groups: found, isPending } = useFound(query, go);
  const groups: SpotlightActionGroupData[] = [
    { group: t("search.pages"), actions: pages },
    { group: t("keys.make"), actions: makers },
    ...found,
  ];
  const onKeyDown = useFirst(query, found, isPending);
  return (
    <Spotlight
      store={store}
      actions={groups}
      query={query}
      onQueryChange={setQuery}
      shortcut={null} // the shell has it, and loads this part
      highlightQuery
      scrollable
      maxHeight={420}
      overlayProps={{ blur: 2, backgroundOpacity: 0.35 }}
      nothingFound={t(isPending ? "loading" : "search.nothing")}
      attributes={{ content: { "aria-label": t("search.placeholder") } }}
      searchProps={{
        leftSection: <Icon name="search" />,
        placeholder: t("search.placeholder"),
        "aria-label": t("search.placeholder"),
        onKeyDown,
      }}
    />
  );
}

/** Selects the first result as results come, and opens it on an Enter that was pressed before they were there. */
function useFirst(query: string, found: readonly unknown[], isPending: boolean): (event: KeyboardEvent) => void {
  const entered = useRef<string | null>(null);
  useEffect(() => {
    const list = document.getElementById(store.getState().listId);
    if (list === null || (query === "" && found.length === 0) || list.querySelector("[data-selected]")) return;
    list.querySelector("[data-action]")?.setAttribute("data-selected", "true");
    store.updateState((state) => ({ ...state, selected: 0 }));
  }, [query, found]);
  useEffect(() => {
    if (entered.current === null || isPending) return;
    const isSame = entered.current === query;
    entered.current = null;
    if (isSame && found.length > 0) firstAction()?.click();
  }, [query, found, isPending]);
  return (event) => {
    if (event.key !== "Enter" || event.nativeEvent.isComposing) return;
    const list = document.getElementById(store.getState().listId);
    if (list?.querySelector("[data-selected]")) return;
    if (isPending) entered.current = query;
    else firstAction()?.click();
  };
}

function firstAction(): HTMLElement | null {
  return document.getElementById(store.getState().listId)?.querySelector<HTMLElement>("[data-action]") ?? null;
}

function useFound(query: string, go: (href: string) => () => void): { groups: SpotlightActionGroupData[]; isPending: boolean } {
  const { t } = useTranslation();
  const may = useMay();
  const words = Object.fromEntries(VERBS.map((verb) => [verb, t(`search.verb.${verb}`)])) as Record<PaletteVerb, string>;
  const { text, verb } = readQuery(query, words);
  const [asked] = useDebouncedValue(text, 200);
  const isAsked = asked !== "" && asked.length <= 200;
  const { data, isFetching } = useQuery({
    queryKey: ["search", asked],
    queryFn: ({ signal }) => getSearch({ q: asked }, { signal }),
    enabled: isAsked,
  });
  const isPending = text !== asked || (isAsked && isFetching);
  if (!data) return { groups: NOTHING, isPending };
  const jobs = data.jobs.map((job) => ({
    id: `job ${job.id}`,
    label: job.name,
    ...(job.title && { description: job.title }),
    keywords: [text],
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
    keywords: [instance.id, text],
    leftSection: <StateMark state={instance.state} />,
    onClick: go(`/instances/${instance.id}`),
  }));
  const acts = actsOn(may("operator") ? data : NONE, verb).map((act) => ({
    id: `act ${act.href}`,
    label: t(`search.act.${act.verb}`, { name: act.name }),
    keywords: [query],
    leftSection: <Icon name={ICONS[act.verb]} />,
    onClick: go(act.href),
  }));
  const groups = [
    { group: t("page.jobs"), actions: verb ? [] : jobs },
    { group: t("page.workflows"), actions: verb ? [] : workflows },
    { group: t("page.instances"), actions: verb ? [] : instances },
    { group: t("search.actions"), actions: acts },
  ].filter((group) => group.actions.length > 0);
  return { groups, isPending };
}

const NONE = { jobs: [], instances: [] };
const NOTHING: SpotlightActionGroupData[] = [];
