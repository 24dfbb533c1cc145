import { useQuery } from "@tanstack/react-query";
import { useCallback, useEffect } from "react";
import { useTranslation } from "react-i18next";
import { getSession, ProblemError, type SessionOut } from "@/api";
import { useReadOnly } from "./health";

/** The caller as the server knows it; asked again when any request is refused for lack of a key. */
export const SESSION = ["session"] as const;

/**
 * The right that an action needs: the lowest role, `keys` for keys and tenants (an admin or the platform), `holds` for pauses
 * and freezes (an operator or the platform), or the platform alone.
 */
export type Needs = "operator" | "admin" | "keys" | "holds" | "platform";

const SHOWN: Record<Needs, string> = { operator: "operator", admin: "admin", keys: "admin", holds: "operator", platform: "platform-admin" };

export function useSession() {
  return useQuery({ queryKey: SESSION, queryFn: ({ signal }) => getSession({ signal }), staleTime: 60_000 });
}

/** Whether the server asks for a key, and this browser has none that is in force. */
export function isSignedOut(error: Error | null): boolean {
  return error instanceof ProblemError && error.problem.status === 401;
}

const SWITCHED = "horai.switched";

/** Reload every tab of this browser: they share the session, and a page of the old tenant must not act in the new one. */
export function announceSwitch(): void {
  window.localStorage.setItem(SWITCHED, String(Date.now())); // other tabs hear of it, this one does not
  window.location.assign("/");
}

/** Reload this tab when another one has switched the tenant. */
export function useSwitches(): void {
  useEffect(() => {
    const restart = (event: StorageEvent) => event.key === SWITCHED && window.location.assign("/");
    window.addEventListener("storage", restart);
    return () => window.removeEventListener("storage", restart);
  }, []);
}

/** Whether the caller may see what belongs to no tenant: nodes, shards, tenants. */
export function seesPlatform(session: SessionOut | undefined): boolean {
  return session === undefined || session.keyless || session.role === "platform-admin";
}

function lacks(session: SessionOut | undefined, needs: Needs): boolean {
  if (session === undefined || session.keyless) {
    return false;
  }
  if (needs === "platform" || (needs === "holds" && session.role === "platform-admin")) {
    return session.role !== "platform-admin";
  }
  if (session.role === "admin") {
    return false;
  }
  if (needs === "keys") {
    return session.role !== "platform-admin";
  }
  return needs === "admin" || session.role !== "operator";
}

/** The reason why the caller cannot change something now: the server is away, or the role is too low. Null when it can. */
export function useObstacle(needs: Needs): string | null {
  const { t } = useTranslation();
  const isReadOnly = useReadOnly();
  const session = useSession().data;
  if (isReadOnly) {
    return t("readOnly.reason");
  }
  return lacks(session, needs) ? t("session.roleTooLow", { role: session?.role, needs: SHOWN[needs] }) : null;
}

/** Whether the role of the caller allows something at all; pages leave out what it does not. */
export function useMay(): (needs: Needs) => boolean {
  const session = useSession().data;
  return useCallback((needs) => !lacks(session, needs), [session]);
}
