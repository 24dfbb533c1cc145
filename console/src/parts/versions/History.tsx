import { Button, Group, Modal, Skeleton, Stack, Text } from "@mantine/core";
import { notifications } from "@mantine/notifications";
import { useMutation, useQuery, useQueryClient } from "@tanstack/react-query";
import { useState } from "react";
import { useTranslation } from "react-i18next";
import {
  getJobVersion,
  getJobVersions,
  getQueueVersion,
  getQueueVersions,
  getReconcilerVersion,
  getReconcilerVersions,
  getWorkflowVersion,
  getWorkflowVersions,
  restoreJobVersion,
  restoreQueueVersion,
  restoreReconcilerVersion,
  restoreWorkflowVersion,
  type VersionList,
  type VersionOut,
} from "@/api";
import { Act } from "../Act";
import { CopyAs } from "../CopyAs";
import { ErrorView } from "../ErrorView";
import { Panel } from "../Panel";
import { quoted } from "../recipes";
import { When } from "../When";
import { Changes } from "./Changes";
import classes from "./History.module.css";
import { DeclaredWarning } from "./ReviewDialog";

const CALLS = {
  job: { plural: "jobs", list: getJobVersions, one: getJobVersion, restore: restoreJobVersion },
  workflow: { plural: "workflows", list: getWorkflowVersions, one: getWorkflowVersion, restore: restoreWorkflowVersion },
  queue: { plural: "queues", list: getQueueVersions, one: getQueueVersion, restore: restoreQueueVersion },
  reconciler: { plural: "reconcilers", list: getReconcilerVersions, one: getReconcilerVersion, restore: restoreReconcilerVersion },
} as const;

const FIRST = 5;

interface HistoryProps {
  kind: keyof typeof CALLS;
  name: string;
}

/** The versions of a definition in a panel of its page. */
export function HistoryPanel(of: HistoryProps) {
  const { t } = useTranslation("definitions");
  return (
    <Panel title={t("history.title")}>
      <History {...of} />
    </Panel>
  );
}

/** The versions of a definition: who changed what, when and how; each can be looked at, and restored. */
export function History({ kind, name }: HistoryProps) {
  const { t } = useTranslation("definitions");
  const { plural, list } = CALLS[kind];
  const [opened, open] = useState<VersionOut | null>(null);
  const [isWhole, showAll] = useState(false);
  const found = useQuery({ queryKey: [plural, name, "versions"], queryFn: ({ signal }) => list(name, { signal }) });
  if (!found.data) return found.error ? <ErrorView error={found.error} /> : <Skeleton height={96} />;
  const items = found.data.items;
  return (
    <Stack gap="xs">
      {items.length === 0 && (
        <Text size="sm" c="dimmed">
          {t("history.empty")}
        </Text>
      )}
      <ol className={classes.list}>
        {(isWhole ? items : items.slice(0, FIRST)).map((version) => (
          <li key={version.version}>
            <Line version={version} isNow={version === items[0]} onOpen={() => open(version)} />
          </li>
        ))}
      </ol>
      {!isWhole && items.length > FIRST && (
        <Button variant="subtle" size="compact-sm" onClick={() => showAll(true)}>
          {t("history.all", { count: items.length })}
        </Button>
      )}
      <Modal opened={opened !== null} onClose={() => open(null)} title={t("history.version", { name, version: opened?.version })} size="lg">
        {opened && <OneVersion kind={kind} name={name} version={opened} list={found.data} onClose={() => open(null)} />}
      </Modal>
    </Stack>
  );
}

function Line({ version, isNow, onOpen }: { version: VersionOut; isNow: boolean; onOpen: () => void }) {
  const { t } = useTranslation("definitions");
  const by = version.actor.name || version.actor.id || t(`actor.${version.actor.kind || "unknown"}`, version.actor.kind);
  const act = t(isNow ? "history.now" : "history.open");
  const what = version.fields.length > 0 ? version.fields.join(", ") : t("history.first");
  return (
    <Group gap="xs" justify="space-between" wrap="nowrap">
      <div className={classes.told}>
        <Text size="sm" truncate title={what}>
          <b className="numbers">{version.version}</b> {what}
        </Text>
        <Text size="xs" c="dimmed" truncate>
          <When at={version.at} /> · {by}
          {version.via && ` · ${t(`via.${version.via}`, version.via)}`}
        </Text>
      </div>
      <Button variant="default" size="compact-sm" onClick={onOpen} aria-label={t("history.openLabel", { act, version: version.version })}>
        {act}
      </Button>
    </Group>
  );
}

interface OneVersionProps extends HistoryProps {
  version: VersionOut;
  list: VersionList;
  onClose: () => void;
}

function OneVersion({ kind, name, version, list, onClose }: OneVersionProps) {
  const { t } = useTranslation("definitions");
  const calls = CALLS[kind];
  const number = String(version.version);
  const isNow = version.version === list.items[0]?.version;
  const detail = useQuery({ queryKey: [calls.plural, name, "versions", number], queryFn: ({ signal }) => calls.one(name, number, { signal }) });
  return (
    <Stack gap="md">
      <ErrorView error={detail.error} />
      {detail.isPending && <Skeleton height={120} />}
      {detail.data && (
        <section>
          <Text size="sm" fw={600} mb={4}>
            {t("history.changed")}
          </Text>
          {detail.data.changes.length > 0 ? <Changes changes={detail.data.changes} /> : <First definition={detail.data.definition} />}
        </section>
      )}
      {!isNow && <Restore kind={kind} name={name} version={number} list={list} onClose={onClose} />}
    </Stack>
  );
}

function First({ definition }: { definition: object }) {
  return <Changes changes={Object.entries(definition).map(([field, after]) => ({ field, before: null, after: after as unknown }))} />;
}

/** Asks the server what a restore would change, shows it, and restores. */
function Restore({ kind, name, version, list, onClose }: { kind: HistoryProps["kind"]; name: string; version: string; list: VersionList; onClose: () => void }) {
  const { t } = useTranslation(["definitions", "common"]);
  const calls = CALLS[kind];
  const queries = useQueryClient();
  const seen = { headers: { "If-Match": `"${list.current}"` } };
  const trial = useMutation({ mutationFn: () => calls.restore(name, version, { dryRun: true }, seen) });
  const restoring = useMutation({
    mutationFn: () => calls.restore(name, version, {}, seen),
    onSuccess: async (fate) => {
      notifications.show({ message: t("history.done", { name, version, now: fate.version }) });
      await queries.invalidateQueries({ queryKey: [calls.plural] });
      onClose();
    },
  });
  const plan = trial.data;
  return (
    <section>
      {plan && (
        <Stack gap="sm" mb="sm">
          <Text size="sm" fw={600}>
            {t("history.wouldChange")}
          </Text>
          <Changes changes={plan.changes} />
          {kind === "queue" || <Text size="sm" c="dimmed">{t("history.stays")}</Text>}
          {plan.declaredBy && <DeclaredWarning app={plan.declaredBy} />}
        </Stack>
      )}
      <ErrorView error={trial.error ?? restoring.error} />
      <Group justify="space-between">
        <CopyAs
          recipe={{
            method: "POST",
            path: `/api/v1/${calls.plural}/${encodeURIComponent(name)}/versions/${version}/restore`,
            body: {},
            cli: `horai ${calls.plural} restore ${quoted(name)} ${version}`,
          }}
        />
        {plan ? (
          <Act needs="admin" loading={restoring.isPending} why={plan.changes.length === 0 ? t("changes.none") : null} onClick={() => restoring.mutate()}>
            {t("history.restore", { version })}
          </Act>
        ) : (
          <Act needs="admin" variant="default" loading={trial.isPending} onClick={() => trial.mutate()}>
            {t("history.compare")}
          </Act>
        )}
      </Group>
    </section>
  );
}
