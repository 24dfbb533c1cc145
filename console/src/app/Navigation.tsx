import { Stack, Text } from "@mantine/core";
import { Link } from "@tanstack/react-router";
import { useTranslation } from "react-i18next";
import { useHealth, useSession } from "@/live";
import { Icon } from "@/parts/Icon";
import { isOpenTo, PAGES } from "./pages";
import classes from "./Shell.module.css";

/** The pages, and which version answers. */
export function Navigation({ onGo }: { onGo: () => void }) {
  const { t } = useTranslation();
  const { health } = useHealth();
  const session = useSession().data;
  return (
    <Stack justify="space-between" h="100%">
      <Stack gap={2}>
        {PAGES.filter((page) => isOpenTo(page, session)).map((page) => (
          <Link
            key={page.name}
            to={page.path}
            className={classes.link}
            activeOptions={{ exact: page.path === "/", includeSearch: false }}
            onClick={onGo}
          >
            <Icon name={page.icon} />
            {t(`page.${page.name}`)}
          </Link>
        ))}
      </Stack>
      <Text size="xs" c="dimmed" px="sm" pb="xs">
        {health ? t("shell.version", { version: health.version }) : " "}
      </Text>
    </Stack>
  );
}
