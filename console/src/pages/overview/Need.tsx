import { Code, Text } from "@mantine/core";
import type { ReactNode } from "react";
import { useTranslation } from "react-i18next";
import type { HoldInForceOut, ModeInForceOut } from "@/api";
import { Go, Icon, type IconName, When, useFaultWords } from "@/parts";
import classes from "./overview.module.css";

interface NeedProps {
  tone: "bad" | "warn" | "plain";
  icon: IconName;
  title: ReactNode;
  detail?: ReactNode;
  at?: string | null;
}

/** One thing that needs somebody: what, why, since when. */
export function Need({ tone, icon, title, detail, at }: NeedProps) {
  return (
    <li className={classes.item} data-tone={tone}>
      <Icon name={icon} size={16} />
      <div>
        <b>{title}</b>
        <div className={classes.detail}>{detail}</div>
      </div>
      <Text size="xs" c="dimmed">
        {at && <When at={at} as="relative" />}
      </Text>
    </li>
  );
}

type Told =
  | "dead" | "failing" | "late" | "lost" | "pausedMore" | "stale" | "driftMissing" | "driftSurplus" | "driftFaulty" | "backfill" | "backfillPaused" | "stuck" | "clogged" | "blocked"
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
