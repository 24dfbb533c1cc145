import { Button, Group, Modal, NumberInput, Stack, Text, TextInput } from "@mantine/core";
import { keepPreviousData, useQuery, useQueryClient } from "@tanstack/react-query";
import { useState } from "react";
import { useTranslation } from "react-i18next";
import { areAllShown, fieldErrors, replayLetters } from "@/api";
import { Act, CopyAs, ErrorView, useWork } from "@/parts";
import { type LetterFilters, withoutStatus } from "./filters";
import { replaying } from "./settling";
import { Narrowed, Settling } from "./Settling";

const MOST = 10_000;
/** Hints of different lengths stand below, so that the fields stand side by side. */
const ORDER: ("label" | "input" | "error" | "description")[] = ["label", "input", "error", "description"];

/** Counts what would be replayed, asks how fast, and does it. */
export function ReplayMany({ filters, onClose }: { filters: LetterFilters | null; onClose: () => void }) {
  const { t } = useTranslation(["dead-letters", "common"]);
  return (
    <Modal opened={filters !== null} onClose={onClose} title={t("replay.manyTitle")} size="lg" closeOnClickOutside={false}>
      {filters && <Asking filters={filters} onClose={onClose} />}
    </Modal>
  );
}

function Asking({ filters, onClose }: { filters: LetterFilters; onClose: () => void }) {
  const { t, i18n } = useTranslation(["dead-letters", "common"]);
  const queries = useQueryClient();
  const only = withoutStatus(filters);
  const [rate, setRate] = useState("");
  const [limit, setLimit] = useState<number>(1_000);
  const wish = { ...only, limit, ...(rate.trim() && { rate: rate.trim() }) };
  const counted = useQuery({
    queryKey: ["dead-letters", "count", only, limit],
    queryFn: ({ signal }) => replayLetters({ ...only, limit, dryRun: true }, { signal }),
    placeholderData: keepPreviousData,
    enabled: limit >= 1 && limit <= MOST,
  });
  const work = useWork(() => void queries.invalidateQueries({ queryKey: ["dead-letters"] }));
  // What the server does not take is said at the field, and nothing has begun.
  const isRefused = work.phase === "done" && Object.keys(fieldErrors(work.error)).length > 0;
  if (work.phase !== "idle" && !isRefused) {
    return <Settling verb="replay" work={work} total={counted.data?.matched ?? 0} onClose={onClose} />;
  }
  const faults = fieldErrors(work.error);
  const number = new Intl.NumberFormat(i18n.language).format(counted.data?.matched ?? 0);
  return (
    <Stack gap="md">
      <Text size="sm">{t("replay.manyExplain")}</Text>
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
      </Group>
      <Text size="sm" fw={600} aria-live="polite" className="numbers">
        {counted.data ? t(counted.data.more ? "replay.countMore" : "replay.count", { number }) : t("replay.counting")}
      </Text>
      <ErrorView error={counted.error} />
      {!areAllShown(work.error, ["rate", "limit"]) && <ErrorView error={work.error} />}
      <Group justify="space-between">
        <CopyAs recipe={{ method: "POST", path: "/api/v1/dlq/replay", body: wish }} />
        <Group gap="xs">
          <Button variant="default" onClick={onClose}>
            {t("common:dialog.cancel")}
          </Button>
          <Act why={counted.data?.matched === 0 ? t("replay.nothing") : null} onClick={() => work.start(replaying(wish))}>
            {t("replay.do")}
          </Act>
        </Group>
      </Group>
    </Stack>
  );
}
