import { Button, Menu } from "@mantine/core";
import { useTranslation } from "react-i18next";
import { LANGUAGES, speak } from "@/i18n";
import { Icon } from "@/parts/Icon";

/** Each language is named in itself. */
const NAMES = { "zh-CN": "中文", en: "English" } as const;

/** Chinese or English. */
export function LanguageSwitch() {
  const { t, i18n } = useTranslation();
  const name = NAMES[i18n.language as keyof typeof NAMES];
  return (
    <Menu position="bottom-end">
      <Menu.Target>
        <Button
          variant="subtle"
          color="gray"
          px="xs"
          fw={500}
          leftSection={<Icon name="language" />}
          aria-label={t("shell.language", { name })}
        >
          {name}
        </Button>
      </Menu.Target>
      <Menu.Dropdown>
        {LANGUAGES.map((language) => (
          <Menu.Item key={language} lang={language} onClick={() => void speak(language)}>
            {NAMES[language]}
          </Menu.Item>
        ))}
      </Menu.Dropdown>
    </Menu>
  );
}
