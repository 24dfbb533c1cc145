import { Group, SimpleGrid, Skeleton, Text } from "@mantine/core";
import type { ReactNode } from "react";
import { useTranslation } from "react-i18next";
import type { HealthOut, HeldHostOut } from "@/api";
import { wordsOf } from "@/i18n";
import { DELAY_LIMIT_MS, type HealthReading, READ_ONLY_AFTER, useHealth } from "@/live";
import { Panel } from "@/parts/Panel";
import { Stat } from "@/parts/Stat";
import { formatDuration } from "@/parts/time";
import { When } from "@/parts/When";
import classes from "./HealthPanel.module.css";

/** How the scheduler is (seed 002 §16): asked as long as it is on the page, and its last good answer after failures. */
export function HealthPanel() {
  const { t } = useTranslation("panels");
  const reading = useHealth();
  const { health, readAt, phase, failures } = reading;
  return (
    <Panel
      title={t("health.title")}
      data-phase={phase}
      aside={
        <Text size="sm" c="dimmed">
          {readAt !== null && (
            <>
              {t("health.asOf")} <When at={new Date(readAt).toISOString()} />
            </>
          )}
        </Text>
      }
    >
      <Group gap="xs" mb="md" role="status" aria-live="polite">
        <span className={classes.dot} data-tone={toneOf(reading)} aria-hidden />
        <Text fw={600}>{useMessage(reading)}</Text>
      </Group>
      {health ? (
        <div data-old={failures >= READ_ONLY_AFTER || undefined} className={classes.figures}>
          <Figures health={health} />
          <Conduct health={health} />
        </div>
      ) : (
        <Skeleton height={164} aria-hidden />
      )}
    </Panel>
  );
}

function isSlow(health: HealthOut): boolean {
  return health.triggerDelayP95Ms > DELAY_LIMIT_MS;
}

/** Whether the scheduler says that it slows low-priority jobs down; a long delay alone does not mean that it does. */
function isShedding(health: HealthOut): boolean {
  return health.modes.includes("SHED_LOW");
}

function toneOf({ failures, health }: HealthReading): string {
  if (failures > 0) return "bad";
  if (!health) return "waiting";
  return isSlow(health) || isShedding(health) || health.status !== "UP" ? "warn" : "good";
}

/** A look that is under way says nothing new: the last message stays until its answer. */
function useMessage({ failures, error, health }: HealthReading): string {
  const { t } = useTranslation("panels");
  if (failures >= READ_ONLY_AFTER) return t("health.readOnly");
  if (failures > 0) return t("health.failed", { count: failures, reason: error });
  if (!health) return t("health.starting");
  if (isShedding(health)) return t("health.degraded");
  if (health.status !== "UP") return t("health.unwell");
  return isSlow(health) ? t("health.slow", { p95: formatDuration(health.triggerDelayP95Ms) }) : t("health.well");
}

function Figures({ health }: { health: HealthOut }) {
  const { t, i18n } = useTranslation("panels");
  const number = new Intl.NumberFormat(i18n.language);
  const percent = new Intl.NumberFormat(i18n.language, { style: "percent", maximumFractionDigits: 2 });
  return (
    <SimpleGrid cols={{ base: 2, md: 4 }} spacing="md">
      <Stat
        label={t("health.delay")}
        value={formatDuration(health.triggerDelayP95Ms)}
        tone={isSlow(health) ? "warn" : undefined}
        hint={
          <>
            {t("health.delayHint", { p50: formatDuration(health.triggerDelayP50Ms), p99: formatDuration(health.triggerDelayP99Ms) })}
            <br />
            {t(isSlow(health) ? "health.above" : "health.within")}
          </>
        }
      />
      <Stat label={t("health.success")} value={percent.format(health.runSuccessRate10m)} hint={t("health.successHint", { limit: percent.format(health.thresholds.runSuccessRate10m) })} />
      <Stat
        label={t("health.backlog")}
        value={number.format(health.retryBacklog)}
        hint={t("health.backlogHint", { limit: number.format(health.thresholds.retryBacklog) })}
        to="/instances"
        search={{ state: "FAIL" }}
      />
      <Stat
        label={t("health.letters")}
        value={number.format(health.dlqGrowthPerMin)}
        hint={t("health.lettersHint", { limit: number.format(health.thresholds.dlqGrowthPerMin) })}
        to="/dead-letters"
      />
    </SimpleGrid>
  );
}

/** What the scheduler does about it: its mode, the actions that are on, and why it calls itself degraded. */
function Conduct({ health }: { health: HealthOut }) {
  const { t } = useTranslation("panels");
  const reasons = useReasons(health);
  const actions = health.actions.map((action) => wordsOf(action.text, action.textSaid));
  const modes = health.modes.map((mode) => (mode === "NORMAL" ? t("health.modes.NORMAL") : mode)).join(", ");
  return (
    <dl className={classes.conduct}>
      <Fact name={t("health.mode")}>{modes}</Fact>
      <Fact name={t("health.actions")}>{actions.length > 0 ? actions.join(" ") : t("health.noAction")}</Fact>
      <Fact name={t("health.flying")}>
        {health.unsettled === null ? String(health.inFlight) : t("health.flight", { running: health.inFlight, unsettled: health.unsettled })}
      </Fact>
      {health.status !== "UP" && <Fact name={t("health.why")}>{reasons.join("; ")}</Fact>}
      {health.heldHosts.length > 0 && (
        <Fact name={t("health.hosts")}>
          <HeldHosts hosts={health.heldHosts} />
        </Fact>
      )}
    </dl>
  );
}

/** Hosts whose calls wait for a circuit breaker or the retry budget, each on one node and for one tenant. */
function HeldHosts({ hosts }: { hosts: HeldHostOut[] }) {
  const { t } = useTranslation("panels");
  return (
    <ul className={classes.hosts}>
      {hosts.map((held) => (
        <li key={`${held.node} ${held.tenant} ${held.host}`}>
          {t("health.host", { host: held.host, tenant: held.tenant, node: held.node, state: t(`health.states.${held.state}`) })} {t("health.hostSince")}{" "}
          <When at={held.since} />
          {", "}
          {t("health.hostNext")} <When at={held.nextTry} />
        </li>
      ))}
    </ul>
  );
}

function Fact({ name, children }: { name: string; children: ReactNode }) {
  return (
    <div>
      <dt>{name}</dt>
      <dd>{children}</dd>
    </div>
  );
}

function useReasons(health: HealthOut): string[] {
  const { t } = useTranslation("panels");
  const told = [
    ...health.reasons.map((reason) => wordsOf(reason.text, reason.textSaid)),
    ...(health.overdueLoops.length > 0 ? [t("health.overdue", { loops: health.overdueLoops.join(", ") })] : []),
    ...(health.holdsLease ? [] : [t("health.noLease")]),
  ];
  return told.length > 0 ? told : [t("health.noDuty")];
}
