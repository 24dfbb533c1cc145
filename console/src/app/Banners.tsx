import { Alert } from "@mantine/core";
import { useSessionStorage } from "@mantine/hooks";
import { useTranslation } from "react-i18next";
import { READ_ONLY_AFTER, useHealth } from "@/live";
import { Icon } from "@/parts/Icon";
import { When } from "@/parts/When";
import classes from "./Shell.module.css";

/** What the server says in English and we can say in every language. */
const KEYLESS = /^No key has been created/;

/** What everybody should know, on every page: nothing can be changed now; and, until it was read, that nobody is asked for a key. */
export function Banners() {
  const { t } = useTranslation();
  const { failures, health, readAt } = useHealth();
  const [read, markRead] = useSessionStorage<string[]>({ key: "horai-read", defaultValue: [], getInitialValueInEffect: false });
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
            {KEYLESS.test(notice) ? t("notice.keyless") : notice}
          </Alert>
        ))}
    </>
  );
}
