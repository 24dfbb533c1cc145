import { Text } from "@mantine/core";
import { useTranslation } from "react-i18next";

/** What the code of an error means; null for a code of somebody else's making, such as the name of an exception. */
export function useFaultWords(): (code: string | null) => string | null {
  const { t, i18n } = useTranslation();
  return (code) => {
    const status = code?.match(/^HTTP_(\d{3})$/)?.[1];
    if (status) return t("fault.HTTP", { status });
    return code && code !== "HTTP" && i18n.exists(`fault.${code}`) ? t(`fault.${code as "TIMEOUT"}`) : null;
  };
}

/** The first line, without the name of the error, which stands before it already. */
function briefly(code: string, message: string): string {
  const line = message.split("\n")[0]?.slice(0, 300) ?? "";
  const named = line.indexOf(`${code}: `);
  return named >= 0 && !line.slice(0, named).includes(" ") ? line.slice(named + code.length + 2) : line;
}

/** An error in one line: its code, what that means, and how its message begins; English messages say for themselves what the code means. */
export function Fault({ code, message }: { code: string; message: string | null }) {
  const { i18n } = useTranslation();
  const meaning = useFaultWords()(code);
  const words = message && i18n.language === "en" ? null : meaning;
  return (
    <span title={message ?? undefined}>
      <Text span size="sm" fw={600}>
        {code}
      </Text>{" "}
      {words && (
        <Text span size="sm">
          {words}{" "}
        </Text>
      )}
      <Text span size={words ? "xs" : "sm"} c="dimmed">
        <bdi>{message && briefly(code, message)}</bdi>
      </Text>
    </span>
  );
}

/** What the code of an error means, above a message that is shown whole. */
export function FaultMeaning({ code }: { code: string | null }) {
  const words = useFaultWords()(code);
  return words && (
    <Text size="sm" mb="xs">
      {words}
    </Text>
  );
}
