import { MantineProvider } from "@mantine/core";
import { QueryClientProvider } from "@tanstack/react-query";
import {
  createMemoryHistory,
  createRootRoute,
  createRoute,
  createRouter,
  RouterContextProvider,
} from "@tanstack/react-router";
import { render } from "@testing-library/react";
import type { ReactElement, ReactNode } from "react";
import { createQueries } from "@/api/queries";
import { theme } from "@/app/theme";
import { i18next, type Language, ready } from "@/i18n";

/** Speaks a language, with the texts of these namespaces at hand. */
export async function inLanguage(language: Language, ...namespaces: ("access" | "alerts" | "calendars" | "incidents" | "instances" | "jobs" | "overview" | "panels" | "queues" | "secrets")[]): Promise<void> {
  await ready;
  await i18next.changeLanguage(language);
  await i18next.loadNamespaces(namespaces);
}

/** Draws a part as the shell would, without its pages. */
export function draw(part: ReactElement) {
  const queries = createQueries();
  const root = createRootRoute();
  const routeTree = root.addChildren([createRoute({ getParentRoute: () => root, path: "$" })]);
  const router = createRouter({ routeTree, history: createMemoryHistory() });
  const around = ({ children }: { children: ReactNode }) => (
    <MantineProvider theme={theme} env="test">
      <QueryClientProvider client={queries}>
        <RouterContextProvider router={router as never}>{children}</RouterContextProvider>
      </QueryClientProvider>
    </MantineProvider>
  );
  return { ...render(part, { wrapper: around }), queries, router };
}
