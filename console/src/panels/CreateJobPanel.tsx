import { Alert, Group, Stack, Text } from "@mantine/core";
import type { ReactNode } from "react";
import { useTranslation } from "react-i18next";
import { detailOf, fieldErrors, hintOf, type JobIn, ProblemError } from "@/api";
import { Act, CopyAs, Icon } from "@/parts";
import { creation } from "@/pages/jobs/recipes";
import { type Phase, useCreateJob } from "./useCreateJob";

interface CreateJobPanelProps {
  draft: JobIn;
  /** The fields of the draft, each with what the server said about it: `errors.cron`. */
  children: (errors: Record<string, string>) => ReactNode;
  onCreated?: (jobId: string) => void;
  /** Why the draft cannot be sent as it is; the server has the last word. */
  why?: string | null;
  /** Asked before the draft is sent: false keeps it here, with its faults at their fields. */
  check?: () => boolean;
}

const WORDS = { idle: "idle", loading: "loading", done: "done", error: "idle" } as const satisfies Record<Phase, string>;

/** Creates a job: idle, loading, done or error (seed 002 §16). */
export function CreateJobPanel({ draft, children, onCreated, why, check }: CreateJobPanelProps) {
  const { t } = useTranslation("panels");
  const { phase, error, isBusy, create } = useCreateJob(draft, onCreated);
  return (
    <form
      noValidate
      data-phase={phase}
      onSubmit={(event) => {
        event.preventDefault();
        if (!isBusy && !why && (check?.() ?? true)) create();
      }}
    >
      <Stack gap="lg">
        {children(fieldErrors(error))}
        {phase === "error" && <Failure error={error} />}
        <Group justify="space-between">
          <CopyAs recipe={creation(draft)} />
          <Act needs="admin" type="submit" why={why} loading={isBusy} leftSection={phase === "done" && <Icon name="check" />}>
            {t(`create.${WORDS[phase]}`)}
          </Act>
        </Group>
        <Text aria-live="polite" size="sm" c="dimmed" ta="right" mih={20}>
          {phase === "loading" && t("create.loading")}
          {phase === "done" && t("create.done")}
        </Text>
      </Stack>
    </form>
  );
}

/** 创建失败 when the server said no, 网络异常 when it said nothing. */
function Failure({ error }: { error: unknown }) {
  const { t } = useTranslation("panels");
  const problem = error instanceof ProblemError ? error.problem : null;
  return (
    <Alert color="red" variant="light" icon={<Icon name="warning" />} role="alert">
      {t(problem ? "create.refused" : "create.network", { reason: detailOf(error) })}
      {hintOf(error) && (
        <Text size="sm" mt={4}>
          {hintOf(error)}
        </Text>
      )}
      {!problem && (
        <Text size="sm" mt={4}>
          {t("create.again")}
        </Text>
      )}
    </Alert>
  );
}
