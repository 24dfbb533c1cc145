import { type ApplyAnswer, getDefinitions } from "@/api";
import { request } from "@/api/request";
import { dump, type Literal, parseLiterally, type YamlDocument } from "./yaml";

/** In the order in which they are written: each may name those before it. */
export const KINDS = ["queue", "job", "workflow", "reconciler"] as const;
export type KindName = (typeof KINDS)[number];

const PAGE = 500;
/** The most definitions of one request. */
const AT_ONCE = 200;

interface Listed {
  items: { kind: string; name: string; definition: { [name: string]: Literal } }[];
  nextCursor: string | null;
}

/** The definitions of these kinds as YAML; with a name, only that one. */
export async function exported(kinds: readonly KindName[], name?: string): Promise<string> {
  const found: { [name: string]: Literal }[] = [];
  for (const kind of kinds) {
    let cursor: string | null = null;
    do {
      const page: Listed = await pageOf(kind, cursor);
      found.push(...page.items.filter((item) => name === undefined || item.name === name).map((item) => ({ kind: item.kind, ...item.definition })));
      cursor = page.nextCursor;
    } while (cursor !== null);
  }
  return dump(found);
}

/** A page with its numbers as they are written: those of payloads come back to the letter. */
async function pageOf(kind: KindName, cursor: string | null): Promise<Listed> {
  const query = new URLSearchParams({ limit: String(PAGE), ...(cursor !== null && { cursor }) });
  const response = await fetch(`/api/v1/definitions/${kind}?${query.toString()}`);
  if (!response.ok) {
    await getDefinitions(kind, { limit: 1 }); // it fails in the same way, as an error that the page can show
    throw new Error(response.statusText);
  }
  return parseLiterally(await response.text()) as unknown as Listed;
}

/** Check or apply documents; the fates are in their order. */
export async function applied(documents: readonly YamlDocument[], dryRun: boolean): Promise<ApplyAnswer> {
  const items: ApplyAnswer["items"] = [];
  for (let start = 0; start < documents.length; start += AT_ONCE) {
    const texts = documents.slice(start, start + AT_ONCE).map((document) => document.text);
    const body = `{"definitions":[${texts.join(",")}],"dryRun":${String(dryRun)}}`;
    const answer = await request<ApplyAnswer>("/api/v1/definitions/apply", { method: "POST", headers: { "Content-Type": "application/json" }, body });
    items.push(...answer.items);
  }
  return { dryRun, items };
}
