import { ActionIcon, CopyButton, Tooltip } from "@mantine/core";
import { useTranslation } from "react-i18next";
import classes from "./Command.module.css";
import { Icon } from "./Icon";

/** A command, a snippet or an error, with a button that copies it; long lines scroll, or are wrapped. */
export function Command({ text, isWrapped }: { text: string; isWrapped?: boolean }) {
  const { t } = useTranslation();
  return (
    <div className={classes.command} data-wrapped={isWrapped || undefined}>
      {/* A long line scrolls, so the keyboard must reach it. */}
      {/* oxlint-disable-next-line jsx-a11y/no-noninteractive-tabindex */}
      <pre tabIndex={0}>{text}</pre>
      <CopyButton value={text}>
        {({ copied, copy }) => (
          <Tooltip label={copied ? t("copy.done") : t("copy.copy")}>
            <ActionIcon variant="subtle" color="gray" onClick={copy} aria-label={t("copy.copy")}>
              <Icon name={copied ? "check" : "copy"} size={16} />
            </ActionIcon>
          </Tooltip>
        )}
      </CopyButton>
    </div>
  );
}
