import { useTranslation } from "react-i18next";
import { EmptyState, GoButton } from "@/parts";

/** There is no such page. */
export function Lost() {
  const { t } = useTranslation();
  return (
    <EmptyState icon="search" title={t("lost.title")} action={<GoButton to="/">{t("lost.home")}</GoButton>}>
      {t("lost.explain")}
    </EmptyState>
  );
}
