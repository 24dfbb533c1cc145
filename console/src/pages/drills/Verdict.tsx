import { Badge } from "@mantine/core";
import { useTranslation } from "react-i18next";

/** Whether a drill kept every promise. */
export function Verdict({ isKept }: { isKept: boolean }) {
  const { t } = useTranslation("drills");
  return (
    <Badge color={isKept ? "green" : "red"} variant="light" tt="none">
      {t(isKept ? "kept" : "broken")}
    </Badge>
  );
}
