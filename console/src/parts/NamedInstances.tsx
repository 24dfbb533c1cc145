import { Group } from "@mantine/core";
import { useTranslation } from "react-i18next";
import type { Sentence } from "@/api";
import { instancesIn } from "@/i18n";
import { Go } from "./links";

interface NamedInstancesProps {
  said: Sentence;
  /** The instance of the page, which needs no link to itself. */
  own?: string | undefined;
}

/** Links to the instances that a sentence of the server names: holders of a queue, nodes upstream, root causes. */
export function NamedInstances({ said, own }: NamedInstancesProps) {
  const { t } = useTranslation();
  const named = instancesIn(said).filter((id) => id !== own);
  if (named.length === 0) return null;
  return (
    <Group gap="md" mt={4}>
      {named.map((id) => (
        <Go key={id} to="/instances/$instance" params={{ instance: id }} size="sm">
          {t("instanceLink", { id })}
        </Go>
      ))}
    </Group>
  );
}
