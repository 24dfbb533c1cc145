import { Button, Menu, Skeleton } from "@mantine/core";
import { lazy, Suspense, useState } from "react";
import { useTranslation } from "react-i18next";
import { Icon } from "@/parts/Icon";
import { LOCAL_ZONE, useZoneChoice } from "./zones";

/** The list of all zones is loaded when the menu is first opened. */
const ZoneSelect = lazy(() => import("@/parts/ZoneSelect").then((module) => ({ default: module.ZoneSelect })));

/** In which zone all times are shown: the browser's, UTC, each job's own, or any other. */
export function ZoneSwitch() {
  const { t } = useTranslation();
  const [choice, choose] = useZoneChoice();
  const [isOpen, setOpen] = useState(false);
  const short = choice === "local" ? t("zone.local") : choice === "job" ? t("zone.job") : choice;
  return (
    <Menu position="bottom-end" width={280} opened={isOpen} onChange={setOpen}>
      <Menu.Target>
        <Button
          variant="subtle"
          color="gray"
          px="xs"
          fw={500}
          leftSection={<Icon name="globe" />}
          aria-label={t("zone.label", { zone: short })}
        >
          {short}
        </Button>
      </Menu.Target>
      <Menu.Dropdown>
        <Menu.Item onClick={() => choose("local")}>{t("zone.localNamed", { zone: LOCAL_ZONE })}</Menu.Item>
        <Menu.Item onClick={() => choose("UTC")}>UTC</Menu.Item>
        <Menu.Item onClick={() => choose("job")}>{t("zone.job")}</Menu.Item>
        <Menu.Divider />
        <Suspense fallback={<Skeleton height={80} />}>
          <ZoneSelect
            p="xs"
            label={t("zone.other")}
            value={["local", "job", "UTC"].includes(choice) ? null : choice}
            comboboxProps={{ withinPortal: false }}
            onChange={(zone) => {
              choose(zone);
              setOpen(false);
            }}
          />
        </Suspense>
      </Menu.Dropdown>
    </Menu>
  );
}
