import { ActionIcon, Anchor, Button, Checkbox, Group, Popover, Stack, Text, TextInput } from "@mantine/core";
import { useLocation, useNavigate } from "@tanstack/react-router";
import { type FormEvent, type ReactNode, useState } from "react";
import { useTranslation } from "react-i18next";
import { useZone } from "@/app/zones";
import type { ColumnChoice } from "./columnChoice";
import { Icon, type IconName } from "./Icon";
import { InstantInput } from "./InstantInput";
import classes from "./ListTools.module.css";
import { formatInstant } from "./time";
import { LONGEST_NAME, MOST_VIEWS, useViews } from "./views";

interface ListToolsProps<Row> {
  /** The name of the list, under which its views and columns are kept. */
  list: string;
  columns: ColumnChoice<Row>;
  /** Where the list begins, for lists by time. */
  start?: { at: string | undefined; onChange: (at: string | undefined) => void };
}

/** What every list offers: saved views, the choice of its columns, and the way to a time. */
export function ListTools<Row>({ list, columns, start }: ListToolsProps<Row>) {
  return (
    <Group gap="xs" justify="flex-end">
      {start && <JumpTo {...start} />}
      <Columns columns={columns} />
      <Views list={list} />
    </Group>
  );
}

interface ToolProps {
  icon: IconName;
  label: string;
  /** Draws what opens; `close` closes it. */
  children: (close: () => void) => ReactNode;
}

function Tool({ icon, label, children }: ToolProps) {
  const [isOpen, open] = useState(false);
  return (
    <Popover opened={isOpen} onChange={open} position="bottom-end" trapFocus returnFocus width={280}>
      <Popover.Target>
        <Button variant="subtle" color="gray" size="compact-sm" leftSection={<Icon name={icon} size={14} />} aria-expanded={isOpen} onClick={() => open(!isOpen)}>
          {label}
        </Button>
      </Popover.Target>
      <Popover.Dropdown p="sm" aria-label={label}>
        {isOpen && children(() => open(false))}
      </Popover.Dropdown>
    </Popover>
  );
}

function JumpTo({ at, onChange }: NonNullable<ListToolsProps<never>["start"]>) {
  const { t } = useTranslation();
  const zone = useZone();
  return (
    <>
      {at && (
        <Button variant="light" size="compact-sm" rightSection={<Icon name="close" size={12} />} aria-label={t("list.wholeFrom", { time: clock(at, zone) })} onClick={() => onChange(undefined)}>
          {t("list.startsAt", { time: clock(at, zone) })}
        </Button>
      )}
      <Tool icon="instances" label={t("list.jump")}>
        {(close) => <JumpForm at={at} onChange={onChange} onClose={close} />}
      </Tool>
    </>
  );
}

/** The instant on the clock of the page; an address may hold any text. */
function clock(at: string, zone: string): string {
  const instant = new Date(at);
  return Number.isNaN(instant.getTime()) ? at : formatInstant(instant, zone, "minute");
}

function JumpForm({ at, onChange, onClose }: NonNullable<ListToolsProps<never>["start"]> & { onClose: () => void }) {
  const { t } = useTranslation();
  const [wanted, want] = useState(at && !Number.isNaN(Date.parse(at)) ? at : "");
  function jump(event: FormEvent): void {
    event.preventDefault();
    if (!wanted) return;
    onChange(wanted);
    onClose();
  }
  return (
    <form noValidate onSubmit={jump}>
      <Stack gap="sm">
        <InstantInput label={t("list.jumpTo")} value={wanted} onChange={want} data-autofocus />
        <Button type="submit" size="xs">
          {t("list.jumpDo")}
        </Button>
      </Stack>
    </form>
  );
}

function Columns<Row>({ columns }: { columns: ColumnChoice<Row> }) {
  const { t } = useTranslation();
  const isLast = columns.choosable.filter((column) => columns.isShown(column.id)).length === 1;
  return (
    <Tool icon="overview" label={t("list.columns")}>
      {() => (
        <Stack gap="xs">
          {columns.choosable.map((column) => (
            <Checkbox
              key={column.id}
              size="xs"
              label={column.header}
              checked={columns.isShown(column.id)}
              disabled={isLast && columns.isShown(column.id)}
              onChange={() => columns.toggle(column.id)}
            />
          ))}
          {!columns.isDefault && (
            <Button variant="subtle" size="compact-xs" onClick={columns.reset}>
              {t("list.resetColumns")}
            </Button>
          )}
        </Stack>
      )}
    </Tool>
  );
}

function Views({ list }: { list: string }) {
  const { t } = useTranslation();
  return (
    <Tool icon="filter" label={t("list.views")}>
      {(close) => <ViewList list={list} onClose={close} />}
    </Tool>
  );
}

function ViewList({ list, onClose }: { list: string; onClose: () => void }) {
  const { t } = useTranslation();
  const navigate = useNavigate();
  const { pathname, searchStr: search } = useLocation();
  const { views, save, remove } = useViews(list);
  const [written, write] = useState("");
  const name = written.trim();
  const isFull = views.length >= MOST_VIEWS && !views.some((view) => view.name === name);
  function keep(event: FormEvent): void {
    event.preventDefault();
    if (name === "" || isFull) return;
    save({ name, search });
    write("");
  }
  return (
    <Stack gap="sm">
      {views.length === 0 ? (
        <Text size="sm" c="dimmed">
          {t("list.noViews")}
        </Text>
      ) : (
        <ul className={classes.views}>
          {views.map((view) => (
            <li key={view.name} className={classes.view}>
              <Anchor
                href={`${pathname}${view.search}`}
                size="sm"
                truncate
                title={view.name}
                aria-current={view.search === search ? "page" : undefined}
                onClick={(event) => {
                  if (event.metaKey || event.ctrlKey || event.shiftKey) return;
                  event.preventDefault();
                  void navigate({ href: `${pathname}${view.search}` });
                  onClose();
                }}
              >
                {view.name}
              </Anchor>
              <ActionIcon variant="subtle" color="gray" size="sm" aria-label={t("list.deleteView", { name: view.name })} onClick={() => remove(view.name)}>
                <Icon name="close" size={14} />
              </ActionIcon>
            </li>
          ))}
        </ul>
      )}
      <form noValidate onSubmit={keep}>
        <Group gap="xs" align="flex-end" wrap="nowrap">
          <TextInput label={t("list.viewName")} size="xs" maxLength={LONGEST_NAME} value={written} onChange={(event) => write(event.currentTarget.value)} style={{ flex: 1 }} />
          <Button type="submit" size="xs" variant="default" disabled={name === "" || isFull}>
            {t("list.saveView")}
          </Button>
        </Group>
      </form>
      <Text size="xs" c="dimmed">
        {t(isFull ? "list.fullViews" : "list.viewsHint", { count: MOST_VIEWS })}
      </Text>
    </Stack>
  );
}
