import type { IconName } from "@/parts/Icon";

/** The pages of the navigation, in its order. */
export const PAGES = [
  { name: "overview", path: "/", icon: "overview" },
  { name: "jobs", path: "/jobs", icon: "jobs" },
  { name: "instances", path: "/instances", icon: "instances" },
  { name: "workflows", path: "/workflows", icon: "workflows" },
  { name: "queues", path: "/queues", icon: "queues" },
  { name: "dead-letters", path: "/dead-letters", icon: "deadLetters" },
  { name: "refresh", path: "/refresh", icon: "refresh" },
  { name: "reconcilers", path: "/reconcilers", icon: "reconcilers" },
  { name: "forecast", path: "/forecast", icon: "forecast" },
] as const satisfies readonly { name: string; path: string; icon: IconName }[];
