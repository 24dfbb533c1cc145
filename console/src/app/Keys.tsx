import { Modal, Stack, Text } from "@mantine/core";
import { useDisclosure } from "@mantine/hooks";
import { useNavigate } from "@tanstack/react-router";
import { useEffect } from "react";
import { useTranslation } from "react-i18next";
import { isTaken, keyReader, SEARCH_KEY } from "./keys";
import classes from "./Keys.module.css";
import { MAKERS, PAGES } from "./pages";

/** Two keys lead to every page; `?` shows which. */
export function Keys() {
  const { t } = useTranslation();
  const navigate = useNavigate();
  const [isOpen, { open, close }] = useDisclosure();
  useEffect(() => {
    const read = keyReader();
    const hear = (event: KeyboardEvent): void => {
      if (isTaken(event)) return;
      const meaning = read(event.key, event.timeStamp);
      if (meaning === null) return;
      event.preventDefault();
      if (meaning === "help") open();
      else void navigate({ to: meaning.path });
    };
    document.addEventListener("keydown", hear);
    return () => document.removeEventListener("keydown", hear);
  }, [navigate, open]);
  return (
    <Modal opened={isOpen} onClose={close} title={t("keys.title")} closeButtonProps={{ "aria-label": t("keys.close") }}>
      <Stack gap="lg">
        <Group title={t("keys.go")} rows={PAGES.map((page) => [t(`page.${page.name}`), "g", page.key])} />
        <Group title={t("keys.make")} rows={MAKERS.map((maker) => [t(`make.${maker.name}`), "n", maker.key])} />
        <Group
          title={t("keys.other")}
          rows={[
            [t("search.placeholder"), SEARCH_KEY, "/"],
            [t("keys.title"), "?"],
          ]}
        />
      </Stack>
    </Modal>
  );
}

function Group({ title, rows }: { title: string; rows: readonly (readonly [string, ...string[]])[] }) {
  return (
    <section>
      <Text fw={600} size="sm" mb={4}>
        {title}
      </Text>
      <dl className={classes.keys}>
        {rows.map(([what, ...keys]) => (
          <div key={what}>
            <dt>{what}</dt>
            <dd>
              {keys.map((key) => (
                <kbd key={key}>{key}</kbd>
              ))}
            </dd>
          </div>
        ))}
      </dl>
    </section>
  );
}
