import { AppShell, Burger, Group, Skeleton, Stack, Text, UnstyledButton } from "@mantine/core";
import { useDisclosure, useHotkeys } from "@mantine/hooks";
import { Outlet } from "@tanstack/react-router";
import { lazy, Suspense, useState } from "react";
import { useTranslation } from "react-i18next";
import { useLiveData } from "@/live";
import { Icon } from "@/parts/Icon";
import { Account } from "./Account";
import { Banners } from "./Banners";
import { LanguageSwitch } from "./LanguageSwitch";
import { Navigation } from "./Navigation";
import { SchemeSwitch } from "./SchemeSwitch";
import { Keys } from "./Keys";
import { SEARCH_KEY } from "./keys";
import classes from "./Shell.module.css";
import { ZoneSwitch } from "./ZoneSwitch";

/** The search is loaded when it is first asked for. */
const loadSearch = () => import("./Search");
const Search = lazy(() => loadSearch().then((module) => ({ default: module.Search })));

/** The frame around every page. */
export function Shell() {
  const { t } = useTranslation();
  const [isOpen, { toggle, close }] = useDisclosure();
  const [isSearched, setSearched] = useState(false);
  const openSearch = () => {
    setSearched(true);
    void loadSearch().then((module) => module.openSearch());
  };
  useHotkeys([
    ["mod+K", openSearch],
    ["/", openSearch],
  ]);
  useLiveData();
  return (
    <AppShell
      header={{ height: 56 }}
      navbar={{ width: 224, breakpoint: "sm", collapsed: { mobile: !isOpen } }}
      padding={{ base: "md", sm: "lg" }}
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
          <Group gap={4} wrap="nowrap" visibleFrom="sm">
            <Switches />
          </Group>
        </Group>
      </AppShell.Header>
      <AppShell.Navbar className={`${classes.bar} ${classes.pages}`} p="xs" aria-label={t("shell.navigation")}>
        <Group gap={4} hiddenFrom="sm" className={classes.switches}>
          {isOpen && <Switches />}
        </Group>
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
      <Suspense fallback={null}>{isSearched && <Search />}</Suspense>
      <Keys />
    </AppShell>
  );
}

/** In the header; on a phone, which has no room there, in the menu. */
function Switches() {
  return (
    <>
      <ZoneSwitch />
      <LanguageSwitch />
      <SchemeSwitch />
      <Account />
    </>
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
