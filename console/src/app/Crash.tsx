import { Button, Stack } from "@mantine/core";
import { useTranslation } from "react-i18next";
import { ErrorView } from "@/parts/ErrorView";

/** A page that failed to be drawn, or whose code is gone since a new version is served: a reload helps both. */
export function Crash({ error }: { error: unknown }) {
  const { t } = useTranslation();
  return (
    <Stack maw={640} gap="md">
      <ErrorView error={error} />
      <div>
        <Button onClick={() => location.reload()}>{t("error.reload")}</Button>
      </div>
    </Stack>
  );
}
