import { Alert, Button, Code, List, Text } from "@mantine/core";
import { useTranslation } from "react-i18next";
import { ProblemError, Unreachable } from "@/api";
import { Icon } from "./Icon";

/** What went wrong, in the server's own words: detail, hint, fields. */
export function ErrorView({ error, onRetry }: { error: unknown; onRetry?: () => void }) {
  const { t } = useTranslation();
  if (!error) return null;
  const problem = error instanceof ProblemError ? error.problem : null;
  const title = error instanceof Unreachable ? t("error.unreachable") : (problem?.title ?? t("error.unexpected"));
  return (
    <Alert color="red" variant="light" icon={<Icon name="warning" />} title={title} role="alert">
      <Text size="sm">{error instanceof Error ? error.message : String(error)}</Text>
      {problem?.hint && (
        <Text size="sm" mt={4}>
          {problem.hint}
        </Text>
      )}
      {problem?.errors && problem.errors.length > 0 && (
        <List size="sm" mt={8}>
          {problem.errors.map((fault) => (
            <List.Item key={`${fault.field} ${fault.message}`}>
              <Code>{fault.field}</Code> {fault.message}
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
