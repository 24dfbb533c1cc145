import { localStorageColorSchemeManager, MantineProvider } from "@mantine/core";
import { Notifications } from "@mantine/notifications";
import { QueryClientProvider } from "@tanstack/react-query";
import { RouterProvider } from "@tanstack/react-router";
import { useMemo } from "react";
import { useTranslation } from "react-i18next";
import { createQueries } from "@/api/queries";
import { nonce } from "./nonce";
import { router } from "./router";
import { cssVariables, namedTheme } from "./theme";

const schemes = localStorageColorSchemeManager({ key: "horai-scheme" });
const queries = createQueries();

/** The console. */
export function App() {
  const { t } = useTranslation();
  const theme = useMemo(() => namedTheme(t("dialog.close"), t("dialog.clear")), [t]);
  return (
    <MantineProvider
      theme={theme}
      cssVariablesResolver={cssVariables}
      colorSchemeManager={schemes}
      defaultColorScheme="auto"
      getStyleNonce={nonce}
    >
      <QueryClientProvider client={queries}>
        <Notifications position="bottom-right" />
        <RouterProvider router={router} />
      </QueryClientProvider>
    </MantineProvider>
  );
}
