import { lazy, Suspense } from "react";
import { isSignedOut, useSession, useSwitches } from "@/live";
import { Shell } from "./Shell";

const SignIn = lazy(() => import("./SignIn").then((module) => ({ default: module.SignIn })));

/** The console, or the way in. No page asks the server before the session is known. */
export function Gate() {
  const session = useSession();
  useSwitches();
  if (session.isPending) {
    return null;
  }
  return isSignedOut(session.error) ? (
    <Suspense>
      <SignIn />
    </Suspense>
  ) : (
    <Shell />
  );
}
