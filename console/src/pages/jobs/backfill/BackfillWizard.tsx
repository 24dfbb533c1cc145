import { Modal, Stepper } from "@mantine/core";
import { useMutation, useQueryClient } from "@tanstack/react-query";
import { useState } from "react";
import { useTranslation } from "react-i18next";
import { backfillJob, type BackfillOut, type BackfillPlanOut, type JobOut } from "@/api";
import { useOnce } from "@/parts";
import { CountStep } from "./CountStep";
import { RangeStep } from "./RangeStep";
import { Started } from "./Started";
import { backfillOf, NO_WISH } from "./wish";

/** Runs slots of the past: a range, how many there are to the slot, how fast, and how far it has come. */
export function BackfillWizard({ job, onClose }: { job: JobOut; onClose: () => void }) {
  const { t } = useTranslation("jobs");
  const queries = useQueryClient();
  const [wish, setWish] = useState(NO_WISH);
  const [step, go] = useState(0);
  const body = backfillOf(wish);
  const count = useMutation({
    mutationFn: async () => (await backfillJob(job.id, { ...body, dryRun: true })) as BackfillPlanOut,
    onSuccess: () => go(1),
  });
  const start = useOnce(async (asked: typeof body, headers) => (await backfillJob(job.id, asked, { headers })) as BackfillOut);
  const begin = (): void =>
    start.mutate(body, {
      onSuccess: () => {
        go(2);
        void queries.invalidateQueries({ queryKey: ["backfills"] });
      },
    });
  const change = (part: Partial<typeof wish>): void => setWish({ ...wish, ...part });
  return (
    <Modal opened onClose={onClose} title={t("backfill.title", { name: job.name })} size="xl">
      <Stepper active={step} size="sm" allowNextStepsSelect={false} mb="lg" iconSize={28}>
        <Stepper.Step label={t("backfill.step.range")} allowStepSelect={false} />
        <Stepper.Step label={t("backfill.step.count")} allowStepSelect={false} />
        <Stepper.Step label={t("backfill.step.progress")} allowStepSelect={false} />
      </Stepper>
      {step === 0 && (
        <RangeStep job={job} wish={wish} onChange={change} error={count.error} isBusy={count.isPending} onNext={() => count.mutate()} />
      )}
      {step === 1 && count.data && (
        <CountStep
          job={job}
          plan={count.data}
          wish={wish}
          onChange={change}
          error={start.error}
          isBusy={start.isPending}
          onBack={() => go(0)}
          onStart={begin}
        />
      )}
      {step === 2 && start.data && <Started backfill={start.data} onClose={onClose} />}
    </Modal>
  );
}
