import { Menu, Text } from "@mantine/core";
import { useTranslation } from "react-i18next";
import { useReadOnly } from "@/live";
import { Icon, type IconName } from "@/parts";

interface MenuActProps {
  icon: IconName;
  children: string;
  onClick: () => void;
  /** Why it cannot be done now; null when it can. */
  why?: string | null;
  isDangerous?: boolean;
}

/** An action in a menu; while it is not possible it stays, disabled, and says why. */
export function MenuAct({ icon, children, onClick, why, isDangerous }: MenuActProps) {
  const { t } = useTranslation();
  const isReadOnly = useReadOnly();
  const reason = isReadOnly ? t("readOnly.reason") : why;
  return (
    <Menu.Item
      leftSection={<Icon name={icon} size={16} />}
      onClick={onClick}
      disabled={Boolean(reason)}
      color={isDangerous ? "red" : undefined}
    >
      {children}
      {reason && (
        <Text size="xs" maw={240}>
          {reason}
        </Text>
      )}
    </Menu.Item>
  );
}
