import { Stack, Text } from "@mantine/core";
import { useTranslation } from "react-i18next";
import type { AssetUseOut } from "@/api";
import { Panel } from "@/parts";
import { UserLink } from "./parts";

interface UsesProps {
  title: string;
  /** Said in place of an empty list. */
  none: string;
  uses: readonly AssetUseOut[];
}

/** The jobs and workflows that use an asset in one role. */
export function Uses({ title, none, uses }: UsesProps) {
  return (
    <Panel title={title}>
      {uses.length === 0 ? (
        <Text size="sm" c="dimmed">
          {none}
        </Text>
      ) : (
        <Stack gap="xs" component="ul" p={0} m={0} style={{ listStyle: "none" }}>
          {uses.map((use) => (
            <li key={JSON.stringify([use.jobId, use.node])}>
              <Use use={use} />
            </li>
          ))}
        </Stack>
      )}
    </Panel>
  );
}

function Use({ use }: { use: AssetUseOut }) {
  const { t } = useTranslation("assets");
  const isWaiting = use.role === "WAITS";
  const facts = [
    t(use.isWorkflow ? "kind.workflow" : "kind.job"),
    use.node !== null && t("uses.node", { name: use.node }),
    isWaiting && t(use.isAny ? "uses.any" : "uses.all"),
    isWaiting && t("uses.pending", { count: use.pending }),
    use.isPaused && t("uses.paused"),
  ];
  return (
    <>
      <Text size="sm" fw={600} component="div" style={{ overflowWrap: "anywhere" }}>
        <UserLink name={use.job} isWorkflow={use.isWorkflow} />
      </Text>
      <Text size="xs" c="dimmed">
        {facts.filter(Boolean).join(" · ")}
      </Text>
    </>
  );
}
