import { Alert } from "@mantine/core";
import { useLocalStorage } from "@mantine/hooks";
import { useTranslation } from "react-i18next";
import { READ_ONLY_AFTER, useHealth } from "@/live";
import { Icon } from "@/parts/Icon";
import { When } from "@/parts/When";
import classes from "./Shell.module.css";

/** Notices that the server writes in English, by their beginning, and the texts that stand for them in every language. */
const NOTICES = [
  ["No key has been created", "notice.keyless"],
  ["The database has a single role", "notice.singleRole"],
] as const;

/** Show on every page that nothing can be changed now, and the notices of the server until the reader hides them in this browser. */
export function Banners() {
  const { t } = useTranslation();
  const { failures, health, readAt } = useHealth();
  const [read, markRead] = useLocalStorage<string[]>({ key: "horai-read", defaultValue: [], getInitialValueInEffect: false });
  const said = (notice: string) => {
    const known = NOTICES.find(([beginning]) => notice.startsWith(beginning));
    return known === undefined ? notice : t(known[1]);
  };
  return (
    <>
      {failures >= READ_ONLY_AFTER && (
        <Alert className={classes.readOnly} icon={<Icon name="lock" />} title={t("readOnly.title")} role="status">
          {t("readOnly.reason")} {readAt !== null && t("readOnly.since")}{" "}
          {readAt !== null && <When at={new Date(readAt).toISOString()} />}
        </Alert>
      )}
      {health?.notices
        .filter((notice) => !read.includes(notice))
        .map((notice) => (
          <Alert
            key={notice}
            className={classes.notice}
            icon={<Icon name="info" />}
            role="note"
            p="xs"
            withCloseButton
            closeButtonLabel={t("notice.hide")}
            onClose={() => markRead([...read, notice])}
          >
            {said(notice)}
          </Alert>
        ))}
    </>
  );
}
