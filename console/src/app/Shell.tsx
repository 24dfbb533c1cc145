import { AppShell, Burger, Group, Skeleton, Stack, Text, UnstyledButton } from "@mantine/core";
import { useDisclosure } from "@mantine/hooks";
import { Outlet } from "@tanstack/react-router";
import { Suspense } from "react";
import { useTranslation } from "react-i18next";
import { useLiveData } from "@/live";
import { Icon } from "@/parts/Icon";
import { Account } from "./Account";
import { Banners } from "./Banners";
import { LanguageSwitch } from "./LanguageSwitch";
import { Navigation } from "./Navigation";
import { SchemeSwitch } from "./SchemeSwitch";
import { Keys } from "./Keys";
import { openSearch, Search, SEARCH_KEY } from "./Search";
import classes from "./Shell.module.css";
import { ZoneSwitch } from "./ZoneSwitch";

/** The frame around every page. */
export function Shell() {
  const { t } = useTranslation();
  const [isOpen, { toggle, close }] = useDisclosure();
  useLiveData();
  return (
    <AppShell
      header={{ height: 56 }}
      navbar={{ width: 224, breakpoint: "sm", collapsed: { mobile: !isOpen } }}
      padding="lg"
      classNames={{ main: classes.main }}
    >
      <AppShell.Header className={classes.bar}>
        <a href="#content" className={classes.skip}>
          {t("shell.skip")}
        </a>
        <Group h="100%" px="md" justify="space-between" wrap="nowrap">
          <Group gap="sm" wrap="nowrap">
            <Burger opened={isOpen} onClick={toggle} hiddenFrom="sm" size="sm" aria-label={t("shell.menu")} />
            <img src="/icon.svg" width={28} height={28} alt="" />
            <Text fw={650} fz={17} translate="no">
              Horai
            </Text>
          </Group>
          <UnstyledButton className={classes.search} onClick={openSearch}>
            <Icon name="search" size={16} />
            <span>{t("search.placeholder")}</span>
            <kbd aria-hidden>{SEARCH_KEY}</kbd>
          </UnstyledButton>
          <Group gap={4} wrap="nowrap">
            <ZoneSwitch />
            <LanguageSwitch />
            <SchemeSwitch />
            <Account />
          </Group>
        </Group>
      </AppShell.Header>
      <AppShell.Navbar className={`${classes.bar} ${classes.pages}`} p="xs" aria-label={t("shell.navigation")}>
        <Navigation onGo={close} />
      </AppShell.Navbar>
      <AppShell.Main id="content" tabIndex={-1}>
        <Stack gap="lg" className={classes.content}>
          <Banners />
          <Suspense fallback={<Waiting />}>
            <Outlet />
          </Suspense>
        </Stack>
      </AppShell.Main>
      <Search />
      <Keys />
    </AppShell>
  );
}

function Waiting() {
  return (
    <Stack gap="lg" aria-hidden>
      <Skeleton height={32} width={240} />
      <Skeleton height={160} />
      <Skeleton height={320} />
    </Stack>
  );
}
