import { createServer, type Server } from "node:http";
import type { AddressInfo } from "node:net";

/** Texts that would do harm if they were taken for anything but texts. */
export const HOSTILE = `<img src=x onerror=alert(1)>"'\u202Egnp.exe`;

/** A service beside the scheduler: what it answers is the test's to say. */
export class Target {
  private constructor(
    private readonly server: Server,
    private readonly answers: Map<string, { status: number; body: unknown } | null>,
  ) {}

  static async start(): Promise<Target> {
    const answers = new Map<string, { status: number; body: unknown } | null>();
    const server = createServer((request, response) => {
      const path = new URL(request.url ?? "/", "http://target").pathname;
      const answer = answers.get(path);
      request.resume();
      if (answer === null) return;
      const { status, body } = answer ?? { status: 200, body: {} };
      request.on("end", () => response.writeHead(status, { "Content-Type": "application/json" }).end(JSON.stringify(body)));
    });
    await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
    return new Target(server, answers);
  }

  url(path: string): string {
    return `http://127.0.0.1:${(this.server.address() as AddressInfo).port}${path}`;
  }

  says(path: string, status: number, body: unknown = {}): void {
    this.answers.set(path, { status, body });
  }

  /** From now on calls to the path get no answer; those under way keep waiting when it answers again. */
  hangs(path: string): void {
    this.answers.set(path, null);
  }

  async stop(): Promise<void> {
    this.server.closeAllConnections();
    await new Promise((resolve) => this.server.close(resolve));
  }
}
