import { act, screen } from "@testing-library/react";
import { beforeEach, describe, expect, test, vi } from "vitest";
import { Act } from "@/parts";
import { draw, inLanguage } from "@/testing/render";
import { answers, isDown, network } from "@/testing/server";
import { HealthPanel } from "./HealthPanel";

const HEALTH = "/api/v1/scheduler/health";
const THINNED = { text: "Low-priority instances wait.", textSaid: { code: "PAUSE_LOW_PRIORITY", text: "Low-priority instances wait.", params: {} } };
const WELL = {
  status: "UP",
  reasons: [],
  modes: ["NORMAL"],
  triggerDelayP50Ms: 3,
  triggerDelayP95Ms: 12,
  triggerDelayP99Ms: 40,
  runSuccessRate10m: 0.9995,
  retryBacklog: 7,
  dlqGrowthPerMin: 0,
  inFlight: 3,
  unsettled: 1,
  actions: [],
  thresholds: { triggerDelayP95Ms: 2_000, runSuccessRate10m: 0.995, retryBacklog: 200_000, dlqGrowthPerMin: 1_000 },
  overdueLoops: [],
  holdsLease: true,
  nodes: [],
  heldHosts: [],
  notices: [],
  lastBackup: null,
  readReplicas: [],
  version: "0.1.0",
};

async function pass(ms: number): Promise<void> {
  await act(() => vi.advanceTimersByTimeAsync(ms));
}

/** Milliseconds until the next question is asked. */
async function untilAsked(calls: unknown[]): Promise<number> {
  const before = calls.length;
  for (let waited = 0; waited <= 60_000; waited += 500) {
    if (calls.length > before) return waited;
    await pass(500);
  }
  throw new Error("never asked again");
}

describe("in Chinese", () => {
  beforeEach(async () => {
    await inLanguage("zh-CN", "panels");
    vi.useFakeTimers();
  });

  test("C52 the panel asks every 2 s while it is answered", async () => {
    const calls = network(HEALTH, answers(WELL));
    draw(<HealthPanel />);
    await pass(0);

    expect(calls.length).toBe(1);
    expect([await untilAsked(calls), await untilAsked(calls)]).toEqual([2_000, 2_000]);
  });

  test("C52 it waits 2 s longer with each failure, up to 30 s, and 2 s again after a success", async () => {
    const failures = Array.from({ length: 16 }, () => isDown);
    const calls = network(HEALTH, ...failures, answers(WELL));
    draw(<HealthPanel />);
    await pass(0);

    const waits: number[] = [];
    while (calls.length <= failures.length + 1) waits.push(await untilAsked(calls));
    const growing = [4, 6, 8, 10, 12, 14, 16, 18, 20, 22, 24, 26, 28, 30, 30, 30];
    expect(waits.map((ms) => ms / 1_000)).toEqual([...growing, 2]);
  });

  test("C53 a p95 above 2000 ms with low-priority jobs slowed down is degradation, and 2000 is healthy", async () => {
    const slow = { ...WELL, triggerDelayP95Ms: 2_000.1 };
    network(HEALTH, answers({ ...WELL, triggerDelayP95Ms: 2_000 }), answers({ ...slow, modes: ["SHED_LOW"], actions: [THINNED] }), answers(slow));
    draw(<HealthPanel />);
    await pass(0);
    expect(screen.getByRole("status").textContent).toBe("调度健康");

    await pass(2_000);
    expect(screen.getByRole("status").textContent).toBe("进入降级：低优先级任务限速");

    await pass(2_000);
    expect(screen.getByRole("status").textContent).toBe("触发延迟偏高：p95 为 2.0 s（目标 2 s），未启用降级动作");
  });

  test("C54 three failures in a row make it read-only: last good figures, no writing, until it is answered", async () => {
    network(HEALTH, answers(WELL), isDown, answers({ detail: "down" }, 503), isDown, answers(WELL));
    const clicked = vi.fn<() => void>();
    draw(
      <>
        <HealthPanel />
        <Act onClick={clicked}>写</Act>
      </>,
    );
    const button = screen.getByRole("button", { name: "写" });
    await pass(0);
    expect(screen.getByText("99.95%")).toBeTruthy();

    await pass(2_000);
    expect(screen.getByRole("status").textContent).toContain("拉取失败，重试第 1 次");
    await pass(4_000);
    expect(screen.getByRole("status").textContent).toContain("拉取失败，重试第 2 次: down");
    expect(button.getAttribute("aria-disabled")).toBeNull();

    await pass(6_000);
    expect(screen.getByRole("status").textContent).toBe("连续失败，前端降级为只读健康摘要");
    expect(screen.getByText("99.95%")).toBeTruthy();
    const refused = screen.getByRole("button", { name: "写" });
    expect(refused.getAttribute("aria-disabled")).toBe("true");
    refused.click();
    expect(clicked).not.toHaveBeenCalled();

    await pass(8_000);
    expect(screen.getByRole("status").textContent).toBe("调度健康");
    screen.getByRole("button", { name: "写" }).click();
    expect(clicked).toHaveBeenCalledOnce();
  });

  test("C55 nothing is asked any more when the panel goes, even while a question is open", async () => {
    const calls = network(HEALTH, answers(WELL), () => new Promise<Response>(() => undefined));
    const drawn = draw(<HealthPanel />);
    await pass(2_000);
    expect(calls.length).toBe(2);

    drawn.unmount();
    await pass(120_000);
    expect(calls.length).toBe(2);
    expect(vi.getTimerCount()).toBe(0);
  });

  test("C55 two panels share one poll, and the first to go does not stop it", async () => {
    const calls = network(HEALTH, answers(WELL));
    const first = draw(<HealthPanel />);
    draw(<HealthPanel />);
    await pass(0);
    expect(calls.length).toBe(1);

    first.unmount();
    await pass(2_000);
    expect(calls.length).toBe(2);
  });
});

test("C53 the panel says the same in English, and claims no action that is not active", async () => {
  await inLanguage("en", "panels");
  vi.useFakeTimers();
  const slow = { ...WELL, triggerDelayP95Ms: 5_000 };
  const shedding = { ...slow, modes: ["SHED_LOW"], actions: [THINNED] };
  network(HEALTH, answers(WELL), answers(slow), answers(shedding), answers({ ...WELL, status: "DEGRADED" }));
  draw(<HealthPanel />);
  await pass(0);
  expect(screen.getByRole("status").textContent).toBe("The scheduler is healthy");

  await pass(2_000);
  expect(screen.getByRole("status").textContent).toBe("Trigger delay is high: p95 5.0 s (target 2 s). No mitigation is active.");

  await pass(2_000);
  expect(screen.getByRole("status").textContent).toBe("Degraded: low-priority jobs are slowed down");

  await pass(2_000);
  expect(screen.getByRole("status").textContent).toBe("The scheduler is unhealthy");
});

test("C53 the panel tells the mode, which action is on, and why the scheduler calls itself degraded", async () => {
  await inLanguage("en", "panels");
  vi.useFakeTimers();
  const ailing = { ...WELL, status: "DEGRADED", modes: ["THROTTLED"], actions: [{ text: "LOW_SLOWED", textSaid: { code: "OTHER", text: "LOW_SLOWED", params: {} } }], overdueLoops: ["b: trigger"], holdsLease: false };
  network(HEALTH, answers(WELL), answers(ailing), answers({ ...WELL, status: "DEGRADED" }));
  draw(<HealthPanel />);
  await pass(0);
  expect(screen.getByText("No active mitigation")).toBeTruthy();
  expect(screen.queryByText("Unhealthy")).toBeNull();

  await pass(2_000);
  expect(screen.getByText("LOW_SLOWED")).toBeTruthy();
  expect(screen.getByText("b: trigger overdue; the responding node has no lease")).toBeTruthy();

  await pass(2_000);
  expect(screen.getByText("a role has no running node")).toBeTruthy();
});

test("C60 the panel lists hosts whose calls wait", async () => {
  expect(await heldHostShown("en", "Held hosts")).toContain("http://shop.test of acme on b: circuit breaker open,");
});

test("C60 the panel lists hosts whose calls wait, in Chinese", async () => {
  expect(await heldHostShown("zh-CN", "受限主机")).toContain("http://shop.test（租户 acme，节点 b）：熔断器已打开，");
});

async function heldHostShown(language: "en" | "zh-CN", title: string): Promise<string | null> {
  await inLanguage(language, "panels");
  vi.useFakeTimers();
  const held = { tenant: "acme", host: "http://shop.test", state: "OPEN", since: "2026-11-16T09:00:00Z", nextTry: "2026-11-16T09:00:05Z", node: "b" };
  network(HEALTH, answers(WELL), answers({ ...WELL, heldHosts: [held] }));
  draw(<HealthPanel />);
  await pass(0);
  expect(screen.queryByText(title)).toBeNull();

  await pass(2_000);
  expect(screen.getByText(title)).toBeTruthy();
  return screen.getByRole("listitem").textContent;
}
