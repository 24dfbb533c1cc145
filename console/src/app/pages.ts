import type { IconName } from "@/parts/Icon";

/** The pages of the navigation, in its order; `key` follows a `g`. */
export const PAGES = [
  { name: "overview", path: "/", icon: "overview", key: "o" },
  { name: "jobs", path: "/jobs", icon: "jobs", key: "j" },
  { name: "instances", path: "/instances", icon: "instances", key: "i" },
  { name: "workflows", path: "/workflows", icon: "workflows", key: "w" },
  { name: "queues", path: "/queues", icon: "queues", key: "q" },
  { name: "dead-letters", path: "/dead-letters", icon: "deadLetters", key: "d" },
  { name: "refresh", path: "/refresh", icon: "refresh", key: "r" },
  { name: "reconcilers", path: "/reconcilers", icon: "reconcilers", key: "c" },
  { name: "forecast", path: "/forecast", icon: "forecast", key: "f" },
] as const satisfies readonly { name: string; path: string; icon: IconName; key: string }[];

/** What can be made, each on a page of its own; `key` follows an `n`. */
export const MAKERS = [
  { name: "job", path: "/jobs/new", key: "j" },
  { name: "workflow", path: "/workflows/new", key: "w" },
  { name: "reconciler", path: "/reconcilers/new", key: "c" },
] as const;
