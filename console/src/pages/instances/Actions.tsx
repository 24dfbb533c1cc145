import { notifications } from "@mantine/notifications";
import { useQuery, useQueryClient } from "@tanstack/react-query";
import { useNavigate } from "@tanstack/react-router";
import { useState } from "react";
import { useTranslation } from "react-i18next";
import { type InstanceOut, replayLetter } from "@/api";
import { STATES } from "@/generated/states";
import { Act, ConfirmDialog, Icon, useLinkedDialog } from "@/parts";
import { letterOf } from "./letterOf";
import { Again } from "./Again";
import { CancelDialog } from "./CancelDialog";
import { Reschedule } from "./Reschedule";
import { SignalDialog } from "./SignalDialog";
import { useSteps } from "./Steps";

type Dialog = "cancel" | "reschedule" | "again" | "replay" | "signal";

export function isFinal(instance: InstanceOut): boolean {
  return STATES.some((state) => state.name === instance.state && state.isFinal);
}

/** What can be done with an instance; what cannot says why. */
export function Actions({ instance }: { instance: InstanceOut }) {
  const { t } = useTranslation(["instances", "common"]);
  const [pressed, setOpen] = useState<Dialog | null>(null);
  const [linked, closeLinked] = useLinkedDialog(["replay"]);
  const open = pressed ?? linked;
  const close = (): void => {
    setOpen(null);
    closeLinked();
  };
  const isOver = isFinal(instance);
  const isDead = instance.state === "DEAD";
  const isOfRun = Boolean(instance.workflow);
  const records = useSteps(instance.id).data?.pages[0];
  const isDurable = records !== undefined && records.items.length + records.signals.length > 0;
  const whyNotMove = isOver ? t("act.ended") : isOfRun ? t("act.ofRun") : instance.key ? null : t("act.noKey");
  return (
    <>
      <Act
        variant="default"
        leftSection={<Icon name="play" size={16} />}
        why={!isOver ? t("act.live") : isDead ? t("act.replayInstead") : null}
        onClick={() => setOpen("again")}
      >
        {t("again.open")}
      </Act>
      <Act variant="default" leftSection={<Icon name="calendar" size={16} />} why={whyNotMove} onClick={() => setOpen("reschedule")}>
        {t("reschedule.open")}
      </Act>
      {isDurable && (
        <Act
          variant="default"
          leftSection={<Icon name="signal" size={16} />}
          why={isOver ? t("act.ended") : null}
          onClick={() => setOpen("signal")}
        >
          {t("signal.open")}
        </Act>
      )}
      <Act
        variant="default"
        leftSection={<Icon name="close" size={16} />}
        why={isOver ? t("act.ended") : null}
        onClick={() => setOpen("cancel")}
      >
        {t("cancel.open")}
      </Act>
      {isDead && (
        <Act
          leftSection={<Icon name="replay" size={16} />}
          why={instance.replays?.length ? t("act.replayed") : null}
          onClick={() => setOpen("replay")}
        >
          {t("replay.open")}
        </Act>
      )}
      <CancelDialog id={instance.id} isRunning={instance.state === "RUNNING"} opened={open === "cancel"} onClose={close} />
      <SignalDialog id={instance.id} waits={records?.waits ?? []} opened={open === "signal"} onClose={close} />
      <Reschedule instance={instance} opened={open === "reschedule"} onClose={close} />
      <Again instance={instance} opened={open === "again"} onClose={close} />
      {isDead && <Replay instance={instance} opened={open === "replay"} onClose={close} />}
    </>
  );
}

export interface ActionProps {
  instance: InstanceOut;
  opened: boolean;
  onClose: () => void;
}

function Replay({ instance, opened, onClose }: ActionProps) {
  const { t } = useTranslation(["instances", "common"]);
  const queries = useQueryClient();
  const navigate = useNavigate();
  const letter = useQuery({
    queryKey: ["dead-letters", "of", instance.id],
    queryFn: ({ signal }) => letterOf(instance, signal),
    enabled: opened,
  });
  const id = letter.data?.id ?? "";
  return (
    <ConfirmDialog
      opened={opened}
      onClose={onClose}
      title={t("replay.title")}
      confirm={t("replay.do")}
      {...(id && { recipe: { method: "POST", path: `/api/v1/dlq/${id}/replay`, cli: `horai dlq replay ${id}` } })}
      onConfirm={async () => {
        const found = letter.data ?? (await letterOf(instance));
        if (!found) throw new Error(t("replay.noLetter"));
        const told = await replayLetter(found.id);
        await queries.invalidateQueries({ queryKey: ["dead-letters"] });
        if (!told.instance) throw new Error(t("replay.superseded"));
        notifications.show({ message: t(told.replayed ? "replay.done" : "replay.before") });
        void navigate({ to: "/instances/$instance", params: { instance: told.instance.id } });
      }}
    >
      {t("replay.explain")}
    </ConfirmDialog>
  );
}
