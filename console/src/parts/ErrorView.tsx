import { Alert, Button, Code, List, Text } from "@mantine/core";
import { useTranslation } from "react-i18next";
import { detailOf, hintOf, messageOf, ProblemError, Unreachable } from "@/api";
import { inWords } from "@/i18n";
import { Icon } from "./Icon";

/** What went wrong, as the server says it: the detail or, where there are some, its fields; and the hint. */
export function ErrorView({ error, onRetry }: { error: unknown; onRetry?: () => void }) {
  const { t } = useTranslation();
  if (!error) return null;
  const problem = error instanceof ProblemError ? error.problem : null;
  const faults = problem?.errors ?? [];
  const kind = problem && inWords({ code: problem.code, text: problem.title, params: {} });
  const title = error instanceof Unreachable ? t("error.unreachable") : (kind ?? t("error.unexpected"));
  return (
    <Alert color="red" variant="light" icon={<Icon name="warning" />} title={title} role="alert">
      {faults.length === 0 && <Text size="sm">{detailOf(error)}</Text>}
      {hintOf(error) && (
        <Text size="sm" mt={4}>
          {hintOf(error)}
        </Text>
      )}
      {faults.length > 0 && (
        <List size="sm" mt={8}>
          {faults.map((fault) => (
            <List.Item key={`${fault.field} ${fault.message}`}>
              <Code>{fault.field}</Code> {messageOf(fault)}
            </List.Item>
          ))}
        </List>
      )}
      {problem && (
        <Text size="xs" c="dimmed" mt={8}>
          {problem.code}
        </Text>
      )}
      {onRetry && (
        <Button mt="sm" size="xs" variant="default" onClick={onRetry}>
          {t("error.again")}
        </Button>
      )}
    </Alert>
  );
}
