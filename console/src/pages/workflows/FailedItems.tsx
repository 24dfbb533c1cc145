import { Stack, Text } from "@mantine/core";
import { useQuery } from "@tanstack/react-query";
import { useTranslation } from "react-i18next";
import { getMapItems, type RunNodeOut, type RunOut } from "@/api";
import { Fault, Go } from "@/parts";

const SHOWN = 20;

interface FailedItemsProps {
  run: RunOut;
  node: RunNodeOut;
  failed: number;
}

/** The first items of a map that failed, each with its instance: its dead letter can be replayed there. */
export function FailedItems({ run, node, failed }: FailedItemsProps) {
  const { t } = useTranslation("workflows");
  const found = useQuery({
    queryKey: ["workflows", run.workflow, "runs", run.id, "items", node.name, node.generation, failed],
    queryFn: ({ signal }) => getMapItems(run.workflow, run.id, node.name, { failed: true, limit: SHOWN }, { signal }),
  });
  return (
    <Stack gap={4}>
      <Text size="sm" c="dimmed">
        {failed > SHOWN ? t("map.firstFailed", { number: SHOWN }) : t("map.failedItems")}
      </Text>
      {found.data?.items.map((item) => (
        <Text key={item.position} size="sm" style={{ overflowWrap: "anywhere" }}>
          <Go to="/instances/$instance" params={{ instance: item.instanceId }} className="numbers">
            {t("map.item", { position: item.position })}
          </Go>{" "}
          {item.errorCode && <Fault code={item.errorCode} message={item.errorMsg} />}
        </Text>
      ))}
    </Stack>
  );
}
