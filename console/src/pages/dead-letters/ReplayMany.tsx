import { Button, Group, Modal, NumberInput, Stack, Text, TextInput } from "@mantine/core";
import { keepPreviousData, useQuery, useQueryClient } from "@tanstack/react-query";
import { useState } from "react";
import { useTranslation } from "react-i18next";
import { areAllShown, fieldErrors, type ReplayAnswer, type ReplayIn, replayLetters } from "@/api";
import { Act, CopyAs, ErrorView, Facts, ProgressBar, useOnce } from "@/parts";
import { isNarrow, type LetterFilters, withoutStatus } from "./filters";

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
  const wish: ReplayIn = { ...only, limit, ...(rate.trim() && { rate: rate.trim() }) };
  const counted = useQuery({
    queryKey: ["dead-letters", "count", only, limit],
    queryFn: ({ signal }) => replayLetters({ ...only, limit, dryRun: true }, { signal }),
    placeholderData: keepPreviousData,
    enabled: limit >= 1 && limit <= MOST,
  });
  const replay = useOnce(async (asked: ReplayIn, headers) => {
    const answer = await replayLetters(asked, { headers });
    void queries.invalidateQueries({ queryKey: ["dead-letters"] });
    return answer;
  });
  if (replay.data) {
    return <Outcome answer={replay.data} onMore={() => replay.mutate(wish)} isBusy={replay.isPending} onClose={onClose} />;
  }
  const faults = fieldErrors(replay.error);
  const number = new Intl.NumberFormat(i18n.language).format(counted.data?.matched ?? 0);
  return (
    <Stack gap="md">
      <Text size="sm">{t("replay.manyExplain")}</Text>
      {isNarrow(filters) && (
        <Facts items={Object.entries(only).map(([name, value]) => [t(`filter.${name as keyof typeof only}`), <bdi key={name}>{value}</bdi>])} />
      )}
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
      {!areAllShown(replay.error, ["rate", "limit"]) && <ErrorView error={replay.error} />}
      <Group justify="space-between">
        <CopyAs recipe={{ method: "POST", path: "/api/v1/dlq/replay", body: wish, isOnce: true }} />
        <Group gap="xs">
          <Button variant="default" onClick={onClose}>
            {t("common:dialog.cancel")}
          </Button>
          <Act
            loading={replay.isPending}
            why={counted.data?.matched === 0 ? t("replay.nothing") : null}
            onClick={() => replay.mutate(wish)}
          >
            {t("replay.do")}
          </Act>
        </Group>
      </Group>
    </Stack>
  );
}

interface OutcomeProps {
  answer: ReplayAnswer;
  onMore: () => void;
  isBusy: boolean;
  onClose: () => void;
}

function Outcome({ answer, onMore, isBusy, onClose }: OutcomeProps) {
  const { t } = useTranslation(["dead-letters", "common"]);
  return (
    <Stack gap="md">
      <ProgressBar
        label={t("replay.manyTitle")}
        done={answer.replayed + answer.superseded}
        total={answer.matched}
        tone={answer.held > 0 ? "paused" : "done"}
      />
      <Facts
        items={[
          [t("replay.replayed"), answer.replayed],
          [t("replay.superseded"), answer.superseded > 0 && answer.superseded],
          [t("replay.held"), answer.held > 0 && answer.held],
        ]}
      />
      {answer.more && <Text size="sm">{t("replay.more")}</Text>}
      <Group justify="flex-end" gap="xs">
        {answer.more && (
          <Act variant="default" loading={isBusy} onClick={onMore}>
            {t("replay.goOn")}
          </Act>
        )}
        <Button onClick={onClose}>{t("replay.close")}</Button>
      </Group>
    </Stack>
  );
}
