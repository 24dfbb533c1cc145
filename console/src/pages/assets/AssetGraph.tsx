import { Text } from "@mantine/core";
import { useMediaQuery } from "@mantine/hooks";
import { useNavigate } from "@tanstack/react-router";
import { useCallback, useMemo } from "react";
import { useTranslation } from "react-i18next";
import type { AssetLink } from "@/api";
import { WorkflowGraph } from "@/pages/workflows/graph";
import { Panel } from "@/parts";
import { meaningOf, nodesOf, workflowsIn } from "./links";

/** Jobs and workflows, the assets that they update, and what these start. A node leads to its page. */
export function AssetGraph({ links }: { links: readonly AssetLink[] }) {
  const { t } = useTranslation("assets");
  const navigate = useNavigate();
  const isPhone = useMediaQuery("(max-width: 48em)", false, { getInitialValueInEffect: false });
  const nodes = useMemo(() => nodesOf(links, { asset: t("kind.asset"), workflow: t("kind.workflow"), job: t("kind.job") }), [links, t]);
  const open = useCallback(
    (node: string): void => {
      const { kind, name } = meaningOf(node, workflowsIn(links));
      if (kind === "asset") void navigate({ to: "/assets/$name", params: { name } });
      else if (kind === "workflow") void navigate({ to: "/workflows/$workflow", params: { workflow: name } });
      else void navigate({ to: "/jobs/$job", params: { job: name } });
    },
    [links, navigate],
  );
  if (nodes.length === 0) return null;
  return (
    <Panel
      title={t("graph.title")}
      aside={
        <Text size="sm" c="dimmed">
          {t("graph.hint")}
        </Text>
      }
    >
      <WorkflowGraph nodes={nodes} label={t("graph.label")} onChoose={open} isUpright={isPhone} />
    </Panel>
  );
}
