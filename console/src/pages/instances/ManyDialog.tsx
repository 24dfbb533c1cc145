import { Switch, TextInput } from "@mantine/core";
import { useState } from "react";
import { useTranslation } from "react-i18next";
import { BulkDialog } from "@/parts/BulkDialog";
import { liveIn } from "./filters";
import { changingMany } from "./recipes";
import { canBeRated, countOf, type Many, sweep, wishesOf } from "./sweeping";

/** Cancels or replays what was selected, or all that match. */
export function ManyDialog({ many, onClose }: { many: Many | null; onClose: () => void }) {
  return many && <Asking many={many} onClose={onClose} />;
}

function Asking({ many, onClose }: { many: Many; onClose: () => void }) {
  const { t } = useTranslation(["instances", "common"]);
  const { verb } = many;
  const [withRunning, setWithRunning] = useState(isOnlyRunning(many));
  const [written, write] = useState("");
  const rate = written.trim();
  const [wish] = wishesOf(many, withRunning);
  const others = (count: number): string => ("ids" in many && count < many.ids.length ? ` ${t(`${verb}Many.others`)}` : "");
  return (
    <BulkDialog
      title={t(`${verb}Many.title`)}
      explain={t(`${verb}Many.stays`)}
      count={{ key: [many, withRunning], ask: (signal) => countOf(many, withRunning, signal) }}
      counted={(count, number, isMore) => t(isMore ? `${verb}Many.atLeast` : `${verb}Many.count`, { number }) + others(count)}
      done={(_, number) => t(`${verb}Many.done`, { number })}
      nothing={t(`${verb}Many.nothing`)}
      confirm={t(`${verb}Many.do`)}
      isDangerous={verb === "cancel"}
      recipe={wish ? changingMany(verb, rate ? { ...wish, rate } : wish) : null}
      topics={["instances", "dead-letters"]}
      fields={["rate"]}
      begin={() => sweep(many, withRunning, rate)}
      onClose={onClose}
    >
      {(faults) => (
        <>
          {verb === "cancel" && "filters" in many && liveIn(many.filters).includes("RUNNING") && !isOnlyRunning(many) && (
            <Switch
              checked={withRunning}
              onChange={(event) => setWithRunning(event.currentTarget.checked)}
              label={t("cancelMany.withRunning")}
              description={t("cancelMany.withRunningHint")}
            />
          )}
          {canBeRated(many) && (
            <TextInput
              label={t("replayMany.rate")}
              description={t("replayMany.rateHint")}
              placeholder="10/s"
              value={written}
              onChange={(event) => write(event.currentTarget.value)}
              error={faults["rate"]}
            />
          )}
        </>
      )}
    </BulkDialog>
  );
}

function isOnlyRunning(many: Many): boolean {
  return "filters" in many && liveIn(many.filters).join() === "RUNNING";
}
