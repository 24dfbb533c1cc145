import { Button, Menu, Modal, Stack, Text } from "@mantine/core";
import { useState } from "react";
import { useTranslation } from "react-i18next";
import { Command } from "./Command";
import { Icon } from "./Icon";
import { curlOf, pythonOf, type Recipe } from "./recipes";

/** An action as curl, as a command line and as Python, so that it can be done again without the console. */
export function CopyAs({ recipe, of }: { recipe: Recipe; /** The action, where there are several. */ of?: string }) {
  const { t } = useTranslation();
  const [shown, show] = useState<"curl" | "cli" | "python" | null>(null);
  const texts = { curl: curlOf(recipe), cli: recipe.cli ?? "", python: pythonOf(recipe) };
  return (
    <>
      <Menu position="bottom-end">
        <Menu.Target>
          <Button variant="default" size="sm" leftSection={<Icon name="copy" size={16} />}>
            {of ? t("copy.asOf", { act: of }) : t("copy.as")}
          </Button>
        </Menu.Target>
        <Menu.Dropdown>
          <Menu.Item onClick={() => show("curl")}>{t("copy.curl")}</Menu.Item>
          {recipe.cli && <Menu.Item onClick={() => show("cli")}>{t("copy.cli")}</Menu.Item>}
          <Menu.Item onClick={() => show("python")}>{t("copy.python")}</Menu.Item>
        </Menu.Dropdown>
      </Menu>
      <Modal opened={shown !== null} onClose={() => show(null)} title={shown && t(`copy.${shown}`)} size="lg">
        <Stack gap="sm">
          <Text size="sm" c="dimmed">
            {t("copy.explain")}
          </Text>
          {shown && <Command text={texts[shown]} />}
        </Stack>
      </Modal>
    </>
  );
}
