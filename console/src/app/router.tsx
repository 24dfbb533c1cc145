import { createRootRoute, createRoute, createRouter, lazyRouteComponent } from "@tanstack/react-router";
import { i18next } from "@/i18n";
import { Crash } from "./Crash";
import { Lost } from "./Lost";
import { Gate } from "./Gate";

/** Texts stay texts: an id of digits in an address is no number. */
function parseSearch(text: string): Record<string, string> {
  return Object.fromEntries(new URLSearchParams(text));
}

function stringifySearch(search: Record<string, unknown>): string {
  const given = Object.entries(search).filter(([, value]) => value !== undefined && value !== "");
  const text = new URLSearchParams(given.map(([name, value]) => [name, String(value)])).toString();
  return text && `?${text}`;
}

const root = createRootRoute({
  component: Gate,
  notFoundComponent: Lost,
  validateSearch: (search: Record<string, unknown>) => search as Record<string, string>,
});

/** A page is opened when its code and its texts are there: until then the one before it stays. */
function page<Path extends string>(path: Path, load: () => Promise<{ default: React.ComponentType }>) {
  const texts = [path.split("/")[1] || "overview", "panels"];
  return createRoute({
    getParentRoute: () => root,
    path,
    component: lazyRouteComponent(load),
    loader: () => i18next.loadNamespaces(texts),
    staleTime: Infinity,
  });
}

/** Each page comes with its own code when it is first opened. */
const routes = [
  page("/", () => import("@/pages/overview")),
  page("/jobs", () => import("@/pages/jobs")),
  page("/jobs/new", () => import("@/pages/jobs/new")),
  page("/jobs/$job", () => import("@/pages/jobs/job")),
  page("/jobs/$job/edit", () => import("@/pages/jobs/edit")),
  page("/instances", () => import("@/pages/instances")),
  page("/instances/$instance", () => import("@/pages/instances/instance")),
  page("/instances/$instance/log", () => import("@/pages/instances/logPage")),
  page("/workflows", () => import("@/pages/workflows")),
  page("/workflows/new", () => import("@/pages/workflows/new")),
  page("/workflows/$workflow", () => import("@/pages/workflows/workflow")),
  page("/workflows/$workflow/edit", () => import("@/pages/workflows/edit")),
  page("/workflows/$workflow/runs/$run", () => import("@/pages/workflows/run")),
  page("/workflows/$workflow/nodes/$node", () => import("@/pages/workflows/node")),
  page("/workflows/$workflow/compare", () => import("@/pages/workflows/compare")),
  page("/assets", () => import("@/pages/assets")),
  page("/assets/$name", () => import("@/pages/assets/asset")),
  page("/queues", () => import("@/pages/queues")),
  page("/dead-letters", () => import("@/pages/dead-letters")),
  page("/dead-letters/$letter", () => import("@/pages/dead-letters/letter")),
  page("/refresh", () => import("@/pages/refresh")),
  page("/refresh/$job", () => import("@/pages/refresh/job")),
  page("/reconcilers", () => import("@/pages/reconcilers")),
  page("/reconcilers/new", () => import("@/pages/reconcilers/new")),
  page("/reconcilers/$reconciler", () => import("@/pages/reconcilers/reconciler")),
  page("/reconcilers/$reconciler/edit", () => import("@/pages/reconcilers/edit")),
  page("/definitions", () => import("@/pages/definitions")),
  page("/forecast", () => import("@/pages/forecast")),
  page("/tenant", () => import("@/pages/tenant")),
  page("/access", () => import("@/pages/access")),
  page("/secrets", () => import("@/pages/secrets")),
  page("/governor", () => import("@/pages/governor")),
  page("/incidents", () => import("@/pages/incidents")),
  page("/drills", () => import("@/pages/drills")),
  page("/drills/$drill", () => import("@/pages/drills/drill")),
  page("/alerts", () => import("@/pages/alerts")),
  page("/sinks", () => import("@/pages/sinks")),
  page("/calendars", () => import("@/pages/calendars")),
  page("/archive", () => import("@/pages/archive")),
  page("/archive/instances", () => import("@/pages/archive/instances")),
  page("/audit", () => import("@/pages/audit")),
] as const;

export const router = createRouter({
  routeTree: root.addChildren(routes),
  parseSearch,
  stringifySearch,
  defaultPreload: "intent",
  defaultPendingMinMs: 0,
  defaultErrorComponent: Crash,
  scrollRestoration: true,
});

declare module "@tanstack/react-router" {
  interface Register {
    router: typeof router;
  }
}
