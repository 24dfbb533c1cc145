import { List } from "@mantine/core";
import { useQueryClient } from "@tanstack/react-query";
import { useState } from "react";
import { useTranslation } from "react-i18next";
import { rerun, type RunNodeOut, type RunOut } from "@/api";
import { Act, ConfirmDialog, Icon } from "@/parts";
import { pathOf } from "./dialogs";
import { descendantsOf, whyNoRerun } from "./graph";

interface RerunProps {
  run: RunOut;
  node: RunNodeOut;
  nodes: readonly RunNodeOut[];
}

/** Does a run again from a node on. */
export function Rerun({ run, node, nodes }: RerunProps) {
  const { t } = useTranslation("workflows");
  const [isAsked, ask] = useState(false);
  const obstacle = whyNoRerun(nodes, node.name);
  return (
    <>
      <Act variant="default" size="xs" why={obstacle && t(`rerun.${obstacle}`)} onClick={() => ask(true)} leftSection={<Icon name="play" size={14} />}>
        {t("act.rerun")}
      </Act>
      <RerunDialog run={run} node={node} nodes={nodes} opened={isAsked} onClose={() => ask(false)} />
    </>
  );
}

/** Asks before a run is done again from a node on, and names the nodes. */
export function RerunDialog({ run, node, nodes, opened, onClose }: RerunProps & { opened: boolean; onClose: () => void }) {
  const { t } = useTranslation("workflows");
  const queries = useQueryClient();
  const again = [node.name, ...descendantsOf(nodes, node.name)];
  return (
    <ConfirmDialog
      opened={opened}
      onClose={onClose}
      title={t("rerun.title", { name: node.name })}
      confirm={t("act.rerun")}
      recipe={{
        method: "POST",
        path: pathOf(run.workflow, "runs", run.id, "rerun"),
        body: { from: node.name },
        cli: `horai workflows rerun ${run.workflow} ${run.id} --from ${node.name}`,
      }}
      onConfirm={async () => {
        await rerun(run.workflowId, run.id, { from: node.name });
        await queries.invalidateQueries({ queryKey: ["workflows"] });
      }}
    >
      {t("rerun.explain", { count: again.length })}
      <List size="sm" mt="xs" mah={200} style={{ overflow: "auto" }}>
        {again.map((name) => (
          <List.Item key={name}>{name}</List.Item>
        ))}
      </List>
    </ConfirmDialog>
  );
}
