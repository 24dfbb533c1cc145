import { Code, Text } from "@mantine/core";
import type { ReactNode } from "react";
import { useTranslation } from "react-i18next";
import type { HoldInForceOut, ModeInForceOut } from "@/api";
import { Go, Icon, type IconName, When, useFaultWords } from "@/parts";
import { type Fix, FixButton } from "./fixes";
import classes from "./overview.module.css";

interface NeedProps {
  tone: "bad" | "warn" | "plain";
  icon: IconName;
  title: ReactNode;
  detail?: ReactNode;
  at?: string | null;
  /** The action that removes the cause. */
  fix?: Fix | undefined;
  /** Another action that removes it, for a caller who may not do the first one. */
  orFix?: Fix | undefined;
  /** The page that explains it, where no action of the caller removes it. */
  see?: ReactNode;
}

/** One cause on the overview: its name, reason and time, and the button that fixes it. */
export function Need({ tone, icon, title, detail, at, fix, orFix, see }: NeedProps) {
  return (
    <li className={classes.item} data-tone={tone}>
      <Icon name={icon} size={16} />
      <div>
        <b>{title}</b>
        <div className={classes.detail}>{detail}</div>
      </div>
      <div className={classes.aside}>
        <Text size="xs" c="dimmed">
          {at && <When at={at} as="relative" />}
        </Text>
        <FixButton fixes={[fix, orFix]} see={see} />
      </div>
    </li>
  );
}

type Told =
  | "dead" | "failing" | "late" | "lost" | "pausedMore" | "stale" | "driftMissing" | "driftSurplus" | "driftFaulty" | "backfill" | "backfillPaused" | "stuck" | "stuckOfFew" | "stuckUnknown" | "behind" | "blocking" | "clogged" | "full" | "heldBy" | "heldByEnded" | "blocked"
  | "inQueue" | "held"
  | "channelRetried" | "channelFailed" | "sinkParked" | "backup" | "backupFailed" | "backupOverdue"
  | `hold.${HoldInForceOut["what"]}` | `mode.${ModeInForceOut["mode"]}`;

/** The same in words. */
export function Words({ name, values }: { name: Told; values: Record<string, unknown> }) {
  const { t } = useTranslation("overview");
  return t(`attention.${name}`, values as { count: number });
}

export function ToJob({ name }: { name: string }) {
  return (
    <Go to="/jobs/$job" params={{ job: name }} inherit c="inherit">
      {name}
    </Go>
  );
}

/** The way to a page that explains a cause. */
export function Seen({ name }: { name: "why" | "instances" | "nodes" | "governor" | "report" | "run" | "progress" }) {
  const { t } = useTranslation("overview");
  return t(`see.${name}`);
}

export function Plain({ name }: { name: "pausedJob" | "pausedQueue" }) {
  const { t } = useTranslation("overview");
  return t(`attention.${name}`);
}

/** The code of an error and what it means, apart from the sentence before it. */
export function Fault({ code }: { code: string | null }) {
  const meaning = useFaultWords()(code);
  return (
    code && (
      <>
        <Code fz="inherit">{code}</Code> {meaning}
      </>
    )
  );
}
