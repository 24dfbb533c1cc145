import { Button, Group, Modal, Stack, Text, Textarea } from "@mantine/core";
import { useQuery, useQueryClient } from "@tanstack/react-query";
import { useState } from "react";
import { useTranslation } from "react-i18next";
import { discardLetters } from "@/api";
import { Act, CopyAs, ErrorView, useWork } from "@/parts";
import { type LetterFilters, withoutStatus } from "./filters";
import { discarding } from "./settling";
import { Narrowed, Settling } from "./Settling";

const MOST = 10_000;

/** Counts what would be discarded, asks why, and does it. */
export function DiscardMany({ filters, onClose }: { filters: LetterFilters | null; onClose: () => void }) {
  const { t } = useTranslation(["dead-letters", "common"]);
  return (
    <Modal opened={filters !== null} onClose={onClose} title={t("discard.manyTitle")} size="lg" closeOnClickOutside={false}>
      {filters && <Asking filters={filters} onClose={onClose} />}
    </Modal>
  );
}

function Asking({ filters, onClose }: { filters: LetterFilters; onClose: () => void }) {
  const { t } = useTranslation(["dead-letters", "common"]);
  const queries = useQueryClient();
  const work = useWork(() => void queries.invalidateQueries({ queryKey: ["dead-letters"] }));
  const only = withoutStatus(filters);
  const [reason, setReason] = useState("");
  const counted = useQuery({
    queryKey: ["dead-letters", "discard count", only],
    queryFn: ({ signal }) => discardLetters({ ...only, limit: MOST, dryRun: true }, { signal }),
    enabled: work.phase === "idle",
  });
  const count = counted.data?.matched;
  if (work.phase !== "idle") return <Settling verb="discard" work={work} total={count ?? 0} onClose={onClose} />;
  const why = count === 0 ? t("discard.nothing") : reason.trim() === "" ? t("discard.noReason") : null;
  return (
    <Stack gap="md">
      <Text size="sm">{t("discard.manyExplain")}</Text>
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
      <Text size="sm" fw={600} aria-live="polite" className="numbers">
        {count === undefined ? t("replay.counting") : t(counted.data?.more ? "discard.countMore" : "discard.count", { count })}
      </Text>
      <ErrorView error={counted.error} />
      <Group justify="space-between">
        <CopyAs recipe={{ method: "POST", path: "/api/v1/dlq/discard", body: { ...only, reason } }} />
        <Group gap="xs">
          <Button variant="default" onClick={onClose}>
            {t("common:dialog.cancel")}
          </Button>
          <Act color="red" why={why} onClick={() => work.start(discarding(only, reason.trim()))}>
            {t("discard.manyDo")}
          </Act>
        </Group>
      </Group>
    </Stack>
  );
}
