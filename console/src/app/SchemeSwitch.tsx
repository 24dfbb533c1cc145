import { ActionIcon, Menu, useMantineColorScheme } from "@mantine/core";
import { useTranslation } from "react-i18next";
import { Icon } from "@/parts/Icon";

const SCHEMES = [
  ["light", "sun"],
  ["dark", "moon"],
  ["auto", "auto"],
] as const;

/** Light, dark, or as the system has it. */
export function SchemeSwitch() {
  const { t } = useTranslation();
  const { colorScheme, setColorScheme } = useMantineColorScheme();
  const icon = SCHEMES.find(([scheme]) => scheme === colorScheme)?.[1] ?? "auto";
  return (
    <Menu position="bottom-end">
      <Menu.Target>
        <ActionIcon variant="subtle" color="gray" size={36} aria-label={t("shell.scheme")}>
          <Icon name={icon} />
        </ActionIcon>
      </Menu.Target>
      <Menu.Dropdown>
        {SCHEMES.map(([scheme, name]) => (
          <Menu.Item key={scheme} leftSection={<Icon name={name} size={16} />} onClick={() => setColorScheme(scheme)}>
            {t(`scheme.${scheme}`)}
          </Menu.Item>
        ))}
      </Menu.Dropdown>
    </Menu>
  );
}
