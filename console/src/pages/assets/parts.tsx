import { Text } from "@mantine/core";
import { useTranslation } from "react-i18next";
import { Go } from "@/parts";

/** A link to the page of a job or a workflow. */
export function UserLink({ name, isWorkflow }: { name: string; isWorkflow: boolean }) {
  return isWorkflow ? (
    <Go to="/workflows/$workflow" params={{ workflow: name }} inherit title={name}>
      <bdi>{name}</bdi>
    </Go>
  ) : (
    <Go to="/jobs/$job" params={{ job: name }} inherit title={name}>
      <bdi>{name}</bdi>
    </Go>
  );
}

interface UpdaterProps {
  job: string | null;
  instanceId: string | null;
  actor: string | null;
  isWorkflow: boolean;
}

/** The instance that updated an asset and its job, or the actor of an update from outside. */
export function Updater({ job, instanceId, actor, isWorkflow }: UpdaterProps) {
  const { t } = useTranslation("assets");
  if (instanceId === null) {
    return (
      <>
        <Text size="sm" truncate>
          {t("outside")}
        </Text>
        <Text size="xs" c="dimmed" truncate title={actor ?? undefined}>
          {actor}
        </Text>
      </>
    );
  }
  return (
    <>
      {job !== null && (
        <Text size="sm" truncate component="div">
          <UserLink name={job} isWorkflow={isWorkflow} />
        </Text>
      )}
      <Text size="xs" truncate component="div">
        <InstanceLink id={instanceId} />
      </Text>
    </>
  );
}

export function InstanceLink({ id }: { id: string }) {
  return (
    <Go to="/instances/$instance" params={{ instance: id }} inherit className="numbers">
      {`#${id}`}
    </Go>
  );
}
