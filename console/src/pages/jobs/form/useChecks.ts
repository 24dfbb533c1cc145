import { useState } from "react";
import { useTranslation } from "react-i18next";
import { faultsOf } from "./checks";
import type { JobDraft } from "./draft";

/** The faults of a draft in words, while it is typed; `check` is asked before it is sent, and says whether it may be. */
export function useChecks(draft: JobDraft): { faults: Record<string, string>; check: () => boolean } {
  const { t } = useTranslation("jobs");
  const [isSent, setSent] = useState(false);
  const faults = Object.fromEntries(Object.entries(faultsOf(draft, isSent)).map(([field, fault]) => [field, t(`form.check.${fault}`)]));
  const check = (): boolean => {
    setSent(true);
    return Object.keys(faultsOf(draft, true)).length === 0;
  };
  return { faults, check };
}
