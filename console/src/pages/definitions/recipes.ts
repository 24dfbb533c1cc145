import { piped, type Recipe } from "@/parts/recipes";

/** Applies definitions: the bodies of the requests, and the text as it was written for the command line. */
export function applying(text: string, documents: readonly { text: string }[]): Recipe {
  const written = `{"definitions":[${documents.map((document) => document.text).join(",")}],"dryRun":false}`;
  return { method: "POST", path: "/api/v1/definitions/apply", written, cli: piped(text.trimEnd(), "horai apply -f -") };
}
