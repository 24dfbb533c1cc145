import { Command } from "./Command";

/** A JSON value as text, to read and to copy. */
export function JsonView({ value }: { value: unknown }) {
  return <Command text={JSON.stringify(value, null, 2) ?? "null"} />;
}
