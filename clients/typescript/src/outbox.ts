// Reports that wait for an answer, and notes that wait to be sent.

import type { Note, Report, Welcome } from "./protocol.ts";
import { nameOf } from "./protocol.ts";

const NOTES_AT_ONCE = 200;
const NOTES_WAITING = 10_000;

export class Outbox {
  /** The reports without an answer. They are sent again on a new connection. */
  readonly reports = new Map<string, Report>();
  private unsent: Report[] = [];
  private notes: Note[] = [];

  add(report: Report): void {
    this.reports.set(nameOf(report), report);
    this.unsent.push(report);
  }

  note(note: Note): void {
    if (this.notes.length < NOTES_WAITING) this.notes.push(note);
  }

  sendAgain(): void {
    this.unsent = [...this.reports.values()];
  }

  /** Return the messages to send, each within the limits of the server: notes first, because reports end attempts. */
  *take(limits: Welcome["limits"]): Generator<string> {
    while (this.notes.length > 0) {
      yield JSON.stringify({ type: "progress", notes: this.notes.splice(0, NOTES_AT_ONCE) });
    }
    const unsent = this.unsent;
    this.unsent = [];
    let batch: string[] = [];
    let size = 0;
    for (const report of unsent) {
      const text = JSON.stringify(report);
      const bytes = Buffer.byteLength(text);
      if (batch.length > 0 && (batch.length >= limits.reports || size + bytes > limits.messageBytes - 1_000)) {
        yield `{"type":"reports","reports":[${batch.join(",")}]}`;
        batch = [];
        size = 0;
      }
      batch.push(text);
      size += bytes + 1;
    }
    if (batch.length > 0) yield `{"type":"reports","reports":[${batch.join(",")}]}`;
  }
}
