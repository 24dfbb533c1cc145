import { Button, Collapse, Group, SegmentedControl, Stack, UnstyledButton } from "@mantine/core";
import { useQuery } from "@tanstack/react-query";
import { useState } from "react";
import { useTranslation } from "react-i18next";
import { getQueues } from "@/api";
import { STATES } from "@/generated/states";
import { type FilterField, FilterInput, Icon, JobSelect, StateMark, useFilters } from "@/parts";
import { TimeRange } from "@/parts/TimeRange";
import classes from "./Filters.module.css";
import { FILTERS, type InstanceFilters, isNarrow, viewOf, VIEWS } from "./filters";

const SELDOM = ["tag", "errorCode", "payload"] as const;

/** Which instances the list shows, all of it in the address. */
export function Filters() {
  const { t } = useTranslation(["instances", "common"]);
  const [filters, change] = useChosen();
  const queues = useQuery({ queryKey: ["queues", "names"], queryFn: ({ signal }) => getQueues({ limit: 200 }, { signal }) });
  const [isOpen, open] = useState(SELDOM.some((name) => filters[name]));
  const input = (field: FilterField & { name: (typeof FILTERS)[number] }) => (
    <FilterInput key={field.name} field={field} value={filters[field.name] ?? ""} onChange={(value) => change({ [field.name]: value })} />
  );
  const options = (queues.data?.items ?? []).map(({ name }) => ({ value: name, label: name }));
  return (
    <Stack gap="sm" role="search">
      <Group gap="md" justify="space-between">
        <StateFilter />
        <SegmentedControl
          size="xs"
          aria-label={t("filter.when")}
          value={viewOf(filters)}
          onChange={(when) => change({ when, order: undefined })}
          data={VIEWS.map((value) => ({ value, label: t(`view.${value}`) }))}
        />
      </Group>
      <Group gap="sm" align="flex-end">
        <JobSelect label={t("column.job")} w={220} value={filters.job ?? ""} onChange={(job) => change({ job })} />
        {input({ kind: "text", name: "key", label: t("filter.key"), width: 200 })}
        {input({ kind: "choice", name: "queue", label: t("filter.queue"), width: 160, options })}
        <TimeRange label={t("filter.range")} from={filters.from} to={filters.to} onChange={change} />
        <Button
          variant="subtle"
          aria-expanded={isOpen}
          leftSection={<Icon name="filter" size={16} />}
          onClick={() => open(!isOpen)}
        >
          {t(isOpen ? "filter.less" : "filter.more")}
        </Button>
        {isNarrow(filters) && (
          <Button
            variant="subtle"
            color="gray"
            leftSection={<Icon name="close" size={16} />}
            onClick={() => change(Object.fromEntries(FILTERS.map((name) => [name, undefined])))}
          >
            {t("common:filter.clear")}
          </Button>
        )}
      </Group>
      <Collapse expanded={isOpen}>
        <Group gap="sm" align="flex-end">
          {input({ kind: "text", name: "tag", label: t("filter.tag"), width: 160 })}
          {input({ kind: "text", name: "errorCode", label: t("filter.errorCode"), width: 160 })}
          {input({ kind: "text", name: "payload", label: t("filter.payload"), width: 180, placeholder: "order.id=17" })}
        </Group>
      </Collapse>
    </Stack>
  );
}

/** The filters; whoever changes one goes on looking at what was looked at. */
function useChosen(): [InstanceFilters, (change: { [name in keyof InstanceFilters]: string | undefined }) => void] {
  const [filters, change] = useFilters(FILTERS);
  return [filters, (wanted) => change({ when: viewOf(filters), ...wanted })];
}

/** The states as a row of switches: several may be on, none is all. */
function StateFilter() {
  const { t } = useTranslation(["instances", "common"]);
  const [filters, change] = useChosen();
  const chosen = new Set(filters.state?.split(",") ?? []);
  function toggle(state: string): void {
    const wanted = STATES.map(({ name }) => name).filter((name) => chosen.has(name) !== (name === state));
    change({ state: wanted.join(",") || undefined });
  }
  return (
    <div className={classes.states} role="group" aria-label={t("filter.states")}>
      {STATES.map(({ name }) => {
        const isOn = chosen.has(name);
        const style = isOn
          ? { background: `var(--state-${name}-tint)`, color: `var(--state-${name}-text)`, borderColor: `var(--state-${name}-solid)` }
          : {};
        return (
          <UnstyledButton key={name} className={classes.state} style={style} aria-pressed={isOn} onClick={() => toggle(name)}>
            <StateMark state={name} />
            {t(`common:state.${name}`)}
          </UnstyledButton>
        );
      })}
    </div>
  );
}
