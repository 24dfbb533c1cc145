import { Textarea } from "@mantine/core";
import { useState } from "react";
import { useTranslation } from "react-i18next";
import { discardLetters } from "@/api";
import { BulkDialog } from "@/parts/BulkDialog";
import { Narrowed } from "./Narrowed";
import { discardingMany } from "./recipes";
import { discarding, type Meant, onlyOf } from "./settling";

const MOST = 10_000;

/** Discards the open letters that were selected, or all that match, with a reason. */
export function DiscardMany({ meant, onClose }: { meant: Meant | null; onClose: () => void }) {
  return meant && <Asking meant={meant} onClose={onClose} />;
}

function Asking({ meant, onClose }: { meant: Meant; onClose: () => void }) {
  const { t } = useTranslation(["dead-letters", "common"]);
  const only = onlyOf(meant);
  const [reason, setReason] = useState("");
  return (
    <BulkDialog
      title={t("discard.manyTitle")}
      explain={t("discard.manyExplain")}
      count={{ key: ["discard", only], ask: (signal) => discardLetters({ ...only, limit: MOST, dryRun: true }, { signal }) }}
      counted={(count, _, isMore) => t(isMore ? "discard.countMore" : "discard.count", { count })}
      done={(count) => t("discard.settled", { count })}
      nothing={t("discard.nothing")}
      why={reason.trim() === "" ? t("discard.noReason") : null}
      confirm={t("discard.manyDo")}
      isDangerous
      recipe={discardingMany({ ...only, reason })}
      topics={["dead-letters"]}
      begin={() => discarding(only, reason.trim())}
      onClose={onClose}
    >
      {() => (
        <>
          <Narrowed only={only} />
          <Textarea
            label={t("discard.reason")}
            value={reason}
            onChange={(event) => setReason(event.currentTarget.value)}
            maxLength={2_000}
            autosize
            required
            data-autofocus
          />
        </>
      )}
    </BulkDialog>
  );
}
