import { Group, NumberInput, TextInput } from "@mantine/core";
import { useState } from "react";
import { useTranslation } from "react-i18next";
import { replayLetters } from "@/api";
import { BulkDialog } from "@/parts/BulkDialog";
import { Narrowed } from "./Narrowed";
import { replayingMany } from "./recipes";
import { type Meant, onlyOf, replaying } from "./settling";

const MOST = 10_000;
const ORDER = ["label", "input", "error", "description"] as ("label" | "input" | "error" | "description")[];

/** Replays the open letters that were selected, or all that match, at a rate. */
export function ReplayMany({ meant, onClose }: { meant: Meant | null; onClose: () => void }) {
  return meant && <Asking meant={meant} onClose={onClose} />;
}

function Asking({ meant, onClose }: { meant: Meant; onClose: () => void }) {
  const { t } = useTranslation(["dead-letters", "common"]);
  const only = onlyOf(meant);
  const [rate, setRate] = useState("");
  const [limit, setLimit] = useState<number>(only.ids?.length ?? 1_000);
  const wish = { ...only, limit, ...(rate.trim() && { rate: rate.trim() }) };
  return (
    <BulkDialog
      title={t("replay.manyTitle")}
      explain={t("replay.manyExplain")}
      count={{
        key: ["replay", only, limit],
        ask: (signal) => replayLetters({ ...only, limit, dryRun: true }, { signal }),
        isOff: limit < 1 || limit > MOST,
      }}
      counted={(_, number, isMore) => t(isMore ? "replay.countMore" : "replay.count", { number })}
      done={(count) => t("replay.settled", { count })}
      nothing={t("replay.nothing")}
      confirm={t("replay.do")}
      recipe={replayingMany(wish)}
      topics={["dead-letters"]}
      fields={["rate", "limit"]}
      begin={() => replaying(wish)}
      onClose={onClose}
    >
      {(faults) => (
        <>
          <Narrowed only={only} />
          <Group grow align="flex-start">
            <TextInput
              label={t("replay.rate")}
              description={t("replay.rateHint")}
              inputWrapperOrder={ORDER}
              placeholder="100/s"
              value={rate}
              onChange={(event) => setRate(event.currentTarget.value)}
              error={faults["rate"]}
            />
            {!only.ids && (
              <NumberInput
                label={t("replay.limit")}
                description={t("replay.limitHint")}
                inputWrapperOrder={ORDER}
                min={1}
                max={MOST}
                value={limit}
                onChange={(value) => setLimit(Number(value))}
                error={faults["limit"]}
              />
            )}
          </Group>
        </>
      )}
    </BulkDialog>
  );
}
