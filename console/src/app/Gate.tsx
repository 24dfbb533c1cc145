import { isSignedOut, useSession, useSwitches } from "@/live";
import { Shell } from "./Shell";
import { SignIn } from "./SignIn";

/** The console, or the way in. No page asks the server before the session is known. */
export function Gate() {
  const session = useSession();
  useSwitches();
  if (session.isPending) {
    return null;
  }
  return isSignedOut(session.error) ? <SignIn /> : <Shell />;
}
