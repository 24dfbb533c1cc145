import type { SessionOut } from "@/api";
import type { IconName } from "@/parts/Icon";

interface NavigationPage {
  name: string;
  path: string;
  icon: IconName;
  key: string;
  /** The roles that may read it; every role of a tenant, unless said otherwise. */
  roles?: readonly string[];
}

/** The pages of the navigation, in its order; `key` follows a `g`. */
export const PAGES = [
  { name: "overview", path: "/", icon: "overview", key: "o" },
  { name: "jobs", path: "/jobs", icon: "jobs", key: "j" },
  { name: "instances", path: "/instances", icon: "instances", key: "i" },
  { name: "workflows", path: "/workflows", icon: "workflows", key: "w" },
  { name: "assets", path: "/assets", icon: "assets", key: "p", roles: ["viewer", "operator", "admin"] },
  { name: "queues", path: "/queues", icon: "queues", key: "q" },
  { name: "dead-letters", path: "/dead-letters", icon: "deadLetters", key: "d" },
  { name: "refresh", path: "/refresh", icon: "refresh", key: "r" },
  { name: "reconcilers", path: "/reconcilers", icon: "reconcilers", key: "c" },
  { name: "definitions", path: "/definitions", icon: "copy", key: "y", roles: ["viewer", "operator", "admin"] },
  { name: "forecast", path: "/forecast", icon: "forecast", key: "f" },
  { name: "governor", path: "/governor", icon: "governor", key: "g", roles: ["viewer", "operator", "admin", "platform-admin"] },
  { name: "incidents", path: "/incidents", icon: "warning", key: "e", roles: ["platform-admin"] },
  { name: "drills", path: "/drills", icon: "check", key: "v", roles: ["platform-admin"] },
  { name: "alerts", path: "/alerts", icon: "alerts", key: "b", roles: ["viewer", "operator", "admin", "platform-admin"] },
  { name: "sinks", path: "/sinks", icon: "external", key: "u", roles: ["viewer", "operator", "admin"] },
  { name: "calendars", path: "/calendars", icon: "calendar", key: "k", roles: ["viewer", "operator", "admin"] },
  { name: "tenant", path: "/tenant", icon: "info", key: "t" },
  { name: "access", path: "/access", icon: "lock", key: "a", roles: ["admin", "platform-admin"] },
  { name: "secrets", path: "/secrets", icon: "lock", key: "s", roles: ["admin"] },
  { name: "archive", path: "/archive", icon: "archive", key: "h", roles: ["viewer", "operator", "admin"] },
  { name: "audit", path: "/audit", icon: "check", key: "l", roles: ["admin", "platform-admin"] },
] as const satisfies readonly NavigationPage[];

/** What can be made, each on a page of its own; `key` follows an `n`. */
export const MAKERS = [
  { name: "job", path: "/jobs/new", needs: "admin", key: "j" },
  { name: "workflow", path: "/workflows/new", needs: "admin", key: "w" },
  { name: "reconciler", path: "/reconcilers/new", needs: "admin", key: "c" },
] as const;

/** Whether the navigation shows a page: a key of the platform reads no tenant's data. */
export function isOpenTo(page: NavigationPage, session: SessionOut | undefined): boolean {
  if (session === undefined || session.keyless || session.role === null) {
    return true;
  }
  return page.roles?.includes(session.role) ?? session.role !== "platform-admin";
}
