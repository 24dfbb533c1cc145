/**
 * Every route of the console as src/app/router.tsx writes it; `src/app/looks.test.ts` holds the two lists against each other. `pages.test.ts`
 * looks at each of them on a desktop and on a phone.
 */
export const ROUTES = [
  "/",
  "/jobs",
  "/jobs/new",
  "/jobs/$job",
  "/jobs/$job/edit",
  "/instances",
  "/instances/$instance",
  "/instances/$instance/log",
  "/workflows",
  "/workflows/new",
  "/workflows/$workflow",
  "/workflows/$workflow/edit",
  "/workflows/$workflow/runs/$run",
  "/workflows/$workflow/nodes/$node",
  "/workflows/$workflow/compare",
  "/assets",
  "/assets/$name",
  "/queues",
  "/dead-letters",
  "/dead-letters/$letter",
  "/refresh",
  "/refresh/$job",
  "/reconcilers",
  "/reconcilers/new",
  "/reconcilers/$reconciler",
  "/reconcilers/$reconciler/edit",
  "/definitions",
  "/forecast",
  "/tenant",
  "/access",
  "/secrets",
  "/governor",
  "/incidents",
  "/drills",
  "/drills/$drill",
  "/alerts",
  "/sinks",
  "/calendars",
  "/archive",
  "/archive/instances",
  "/audit",
] as const;

export type Route = (typeof ROUTES)[number];

/** The routes that no test of their own shows in both languages and both schemes. */
export const ONLY_HERE: ReadonlySet<Route> = new Set<Route>(["/tenant", "/access", "/secrets", "/archive", "/archive/instances", "/audit"]);

/** The address of a route, with the objects that its parameters name: `/jobs/$job` → `/jobs/mail`. */
export function addressOf(route: Route, known: Readonly<Record<string, string>>): string {
  return route.replaceAll(/\$(\w+)/g, (_, name: string) => {
    const value = known[name];
    if (value === undefined) throw new Error(`${route}: no ${name} is known`);
    return encodeURIComponent(value);
  });
}
