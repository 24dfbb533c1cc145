import { Button, Checkbox, CopyButton, Group, Select, TextInput } from "@mantine/core";
import { type ReactNode, useEffect, useRef, useState } from "react";
import { useTranslation } from "react-i18next";
import { Icon, Pieces, When } from "@/parts";
import { save } from "@/parts/files";
import classes from "./Attempts.module.css";
import { type Level, LEVELS, type Line, linesWith, logText, type LogView, percentOf, WHOLE } from "./logLines";

interface LogProps {
  lines: readonly Line[];
  /** For the files of the log. */
  name: string;
  /** A link to the page of the log. */
  aside?: ReactNode;
}

/** The log of an attempt below it. */
export function Log(props: LogProps) {
  const [view, setView] = useState(WHOLE);
  return <LogOf {...props} view={view} onChange={(change) => setView({ ...view, ...change })} />;
}

interface LogOfProps extends LogProps {
  view: LogView;
  onChange: (change: Partial<LogView>) => void;
  /** As high as the window. */
  isFull?: boolean;
}

/** A log: searched, filtered by level, wrapped, followed while it runs, copied and saved. */
export function LogOf({ lines, name, aside, view, onChange, isFull }: LogOfProps) {
  const { t } = useTranslation(["instances", "common"]);
  const [isLarge, enlarge] = useState(false);
  const shown = linesWith(lines, view.text, view.level);
  const list = useRef<HTMLOListElement>(null);
  const last = lines.at(-1)?.at;
  useEffect(() => {
    if (last && view.isFollowed) list.current?.scrollTo({ top: list.current.scrollHeight });
  }, [last, view.isFollowed]);
  return (
    <div className={classes.frame}>
      <Group gap="sm" p="xs">
        <TextInput
          size="xs"
          aria-label={t("log.search")}
          placeholder={t("log.search")}
          leftSection={<Icon name="search" size={14} />}
          value={view.text}
          onChange={(event) => onChange({ text: event.currentTarget.value })}
        />
        <Select
          size="xs"
          w={150}
          aria-label={t("log.level")}
          data={LEVELS.map((level, place) => ({ value: level, label: place === 0 ? t("log.allLevels") : place === LEVELS.length - 1 ? level : t("log.from", { level }) }))}
          value={view.level}
          allowDeselect={false}
          onChange={(level) => level && onChange({ level: level as Level })}
        />
        <span aria-live="polite" className="numbers">
          {t("log.count", { shown: shown.length, all: lines.length })}
        </span>
        <Checkbox size="xs" label={t("log.wrap")} checked={view.isWrapped} onChange={(event) => onChange({ isWrapped: event.currentTarget.checked })} />
        <Checkbox size="xs" label={t("log.follow")} checked={view.isFollowed} onChange={(event) => onChange({ isFollowed: event.currentTarget.checked })} />
        <CopyButton value={logText(shown)}>
          {({ copied, copy }) => (
            <Button size="compact-sm" variant="subtle" color="gray" onClick={copy}>
              {t(copied ? "common:copy.done" : "common:copy.copy")}
            </Button>
          )}
        </CopyButton>
        <Button size="compact-sm" variant="subtle" color="gray" onClick={() => save(`${name}.log`, "text/plain", logText(shown))}>
          {t("common:download.open")}
        </Button>
        {!isFull && (
          <Button size="compact-sm" variant="subtle" color="gray" aria-expanded={isLarge} onClick={() => enlarge(!isLarge)}>
            {t(isLarge ? "log.smaller" : "log.larger")}
          </Button>
        )}
        {aside}
      </Group>
      {/* Many lines scroll, so the keyboard must reach them. */}
      {/* oxlint-disable-next-line jsx-a11y/no-noninteractive-tabindex */}
      <ol className={classes.log} tabIndex={0} aria-label={t("attempts.log")} ref={list} data-wrapped={view.isWrapped || undefined} data-large={isLarge || undefined} data-full={isFull || undefined}>
        {shown.map((line, place) => (
          // Two lines of the same instant may be equal.
          // oxlint-disable-next-line react/no-array-index-key
          <li key={`${line.at} ${place}`} data-level={line.level}>
            <When at={line.at} precision="millis" />
            <b>{line.level}</b>
            <span className="numbers">{percentOf(line)}</span>
            <Message text={line.message} />
          </li>
        ))}
      </ol>
    </div>
  );
}

/** A message; the frames of a traceback in it are folded. */
function Message({ text }: { text: string }) {
  return text.includes('File "') ? (
    <div>
      <Pieces text={text} />
    </div>
  ) : (
    <bdi>{text}</bdi>
  );
}
