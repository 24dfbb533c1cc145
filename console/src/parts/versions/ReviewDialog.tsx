import { Alert, Button, Group, Modal, Stack, Text } from "@mantine/core";
import { useQuery } from "@tanstack/react-query";
import { useTranslation } from "react-i18next";
import { type FieldChangeOut, getInstanceCount } from "@/api";
import { Act } from "../Act";
import { ErrorView } from "../ErrorView";
import { Icon } from "../Icon";
import { Changes } from "./Changes";

interface ReviewDialogProps {
  /** What would change; null keeps the dialog closed. */
  changes: readonly FieldChangeOut[] | null;
  /** The job whose waiting instances a change may concern. */
  job?: string;
  declaredBy?: string | null | undefined;
  error: Error | null;
  isSaving: boolean;
  onSave: () => void;
  onClose: () => void;
}

/** The changes before they are made: the server has tried them, and says what each field would be. */
export function ReviewDialog({ changes, job, declaredBy, error, isSaving, onSave, onClose }: ReviewDialogProps) {
  const { t } = useTranslation(["definitions", "common"]);
  return (
    <Modal opened={changes !== null} onClose={onClose} title={t("review.title")} size="lg">
      {changes && (
        <Stack gap="md">
          <Changes changes={changes} />
          <Consequences changes={changes} {...(job !== undefined && { job })} />
          {declaredBy && <DeclaredWarning app={declaredBy} />}
          <ErrorView error={error} />
          <Group justify="flex-end" gap="xs">
            <Button variant="default" onClick={onClose}>
              {t("review.back")}
            </Button>
            <Act needs="admin" loading={isSaving} onClick={onSave} data-autofocus>
              {t("review.save")}
            </Act>
          </Group>
        </Stack>
      )}
    </Modal>
  );
}

export function DeclaredWarning({ app }: { app: string }) {
  const { t } = useTranslation("definitions");
  return (
    <Alert color="orange" icon={<Icon name="warning" />} p="xs" role="note">
      {t("declared", { app })}
    </Alert>
  );
}

const SCHEDULE = ["cron", "every", "everyFrom", "anchor", "timezone", "dst", "calendar", "startAt", "endAt", "jitter", "dialect"];
const PLACE = ["queue", "priority", "status"];

/** What happens to the instances that wait, and to the slots to come. */
function Consequences({ changes, job }: { changes: readonly FieldChangeOut[]; job?: string }) {
  const { t } = useTranslation("definitions");
  const fields = new Set(changes.map((change) => change.field));
  const has = (names: readonly string[]): boolean => names.some((name) => fields.has(name));
  const waiting = useQuery({
    queryKey: ["instances", "count", "waiting", job],
    queryFn: ({ signal }) => getInstanceCount({ job: job ?? "", state: "INIT" }, { signal }),
    enabled: job !== undefined && (has(SCHEDULE) || has(PLACE) || has(["payload"])),
  });
  const count = waiting.data?.count;
  const told: string[] = [];
  if (has(SCHEDULE)) told.push(t("review.schedule"));
  if (count !== undefined && count > 0 && has(SCHEDULE)) told.push(t("review.timesStay", { count }));
  if (count !== undefined && count > 0 && has(PLACE)) told.push(t("review.follow", { count }));
  if (fields.has("nodes")) told.push(t("review.runs"));
  if (fields.has("maxConcurrency")) told.push(t("review.limit"));
  if (told.length === 0) return null;
  return (
    <Alert color="gray" icon={<Icon name="info" />} p="xs" role="note">
      {told.map((line) => (
        <Text size="sm" key={line}>
          {line}
        </Text>
      ))}
    </Alert>
  );
}
