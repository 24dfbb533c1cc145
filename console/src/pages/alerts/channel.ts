import type { ChannelFields, ChannelFieldsKind, ChannelFieldsSecurity, ChannelOut } from "@/api";

/** The fields that each kind of channel accepts, as the server checks them. */
export const FIELDS = {
  webhook: ["url", "secret"],
  slack: ["url"],
  feishu: ["url", "secret"],
  dingtalk: ["url", "secret"],
  wecom: ["url"],
  email: ["host", "port", "security", "username", "password", "from", "to"],
} as const satisfies Record<ChannelFieldsKind, readonly (keyof ChannelFields)[]>;

export type ChannelField = (typeof FIELDS)[ChannelFieldsKind][number];

export const KINDS = Object.keys(FIELDS) as ChannelFieldsKind[];

/** A channel while it is edited. `***` stands for a stored value that is not shown. */
export interface ChannelDraft {
  name: string;
  kind: ChannelFieldsKind;
  language: NonNullable<ChannelFields["language"]>;
  url: string;
  secret: string;
  host: string;
  port: number | "";
  security: NonNullable<ChannelFieldsSecurity> | "";
  username: string;
  password: string;
  from: string;
  to: string[];
}

/** A channel to edit; without one, a new channel that speaks the language of the page. */
export function draftOf(channel: ChannelOut | null, language: string): ChannelDraft {
  return {
    name: channel?.name ?? "",
    kind: channel?.kind ?? "webhook",
    language: channel?.language ?? (language === "zh-CN" ? "zh-CN" : "en"),
    url: channel?.url ?? "",
    secret: channel?.secret ?? "",
    // The host of another kind is that of its URL.
    host: (channel?.kind === "email" && channel.host) || "",
    port: channel?.port ?? "",
    security: channel?.security ?? "",
    username: channel?.username ?? "",
    password: channel?.password ?? "",
    from: channel?.from ?? "",
    to: channel?.to ?? [],
  };
}

/** The body of the request: the fields of the kind that are set. */
export function bodyOf(draft: ChannelDraft): ChannelFields {
  const own = FIELDS[draft.kind].map((name: ChannelField) => [name, draft[name]] as const).filter(([, value]) => value !== "" && !(Array.isArray(value) && value.length === 0));
  return { kind: draft.kind, language: draft.language, ...Object.fromEntries(own) };
}

/** The place that a channel sends to, without anything secret. */
export function placeOf({ kind, host, port, to }: ChannelOut): string {
  return kind === "email" ? `${(to ?? []).join(", ")} (${host}:${port})` : (host ?? "");
}
