import { ActionIcon, Menu } from "@mantine/core";
import { useNavigate } from "@tanstack/react-router";
import { useTranslation } from "react-i18next";
import type { JobOut } from "@/api";
import { Icon } from "@/parts";
import type { Asked } from "./dialogs";
import { MenuAct } from "./MenuAct";

/** What can be done with a job of the list. */
export function RowMenu({ job, onAsk }: { job: JobOut; onAsk: (asked: Asked) => void }) {
  const { t } = useTranslation("jobs");
  const navigate = useNavigate();
  return (
    // What happens in the menu is no click on the row, nor a step to the next one.
    <div role="presentation" onClick={(event) => event.stopPropagation()} onKeyDown={(event) => event.stopPropagation()}>
      <Menu position="bottom-end" withinPortal>
        <Menu.Target>
          <ActionIcon variant="subtle" color="gray" aria-label={t("act.menu", { name: job.name })}>
            <Icon name="more" />
          </ActionIcon>
        </Menu.Target>
        <Menu.Dropdown>
          <MenuAct icon="play" onClick={() => onAsk({ act: "trigger", job })}>
            {t("act.trigger")}
          </MenuAct>
          {job.status === "PAUSED" ? (
            <MenuAct icon="right" onClick={() => onAsk({ act: "resume", job })}>
              {t("act.resume")}
            </MenuAct>
          ) : (
            <MenuAct icon="pause" onClick={() => onAsk({ act: "pause", job })}>
              {t("act.pause")}
            </MenuAct>
          )}
          <Menu.Divider />
          <MenuAct icon="edit" onClick={() => void navigate({ to: "/jobs/$job/edit", params: { job: job.name } })}>
            {t("act.edit")}
          </MenuAct>
          <MenuAct icon="copy" onClick={() => void navigate({ to: "/jobs/new", search: { like: job.name } })}>
            {t("act.clone")}
          </MenuAct>
        </Menu.Dropdown>
      </Menu>
    </div>
  );
}
