import { expect, test } from "vitest";
import type { Sentence } from "@/api";
import { inLanguage } from "@/testing/render";
import { i18next, instancesIn, inWords, wordsOf } from ".";

const PAUSE: Sentence = {
  code: "PAUSED",
  text: "the job is paused since 2026-11-16T09:00:00+08:00 (moving house)",
  params: {
    since: { code: "SINCE", text: " since 2026-11-16T09:00:00+08:00", params: { since: "2026-11-16T09:00:00+08:00" } },
    note: { code: "NOTED", text: " (moving house)", params: { note: "moving house" } },
  },
};
const HELD: Sentence = {
  code: "HELD",
  text: `Instance 5 is held: ${PAUSE.text}.`,
  params: { instance: { code: "INSTANCE", text: "instance 5", params: { instance: 5, key: "" } }, hold: PAUSE, failure: "" },
};

test("a sentence of the server is said in Chinese, with the sentences within it", async () => {
  await inLanguage("zh-CN");

  expect(inWords(HELD)).toBe("实例 5 被挂起：任务已暂停（自 2026-11-16T09:00:00+08:00 起）（moving house）。");
});

test("joined sentences are joined as Chinese joins them", async () => {
  await inLanguage("zh-CN");
  const full: Sentence = { code: "QUEUE_PAUSED", text: "its queue mail is paused", params: { queue: "mail" } };

  expect(inWords({ code: "EITHER", text: "…", params: { parts: [full, PAUSE] } })).toMatch(/^队列 mail 已暂停，或任务已暂停/);
  expect(inWords({ code: "THEN", text: "…", params: { parts: [{ ...full, text: "Its queue mail is paused." }, HELD] } })).toMatch(/^队列 mail 已暂停。实例 5/);
});

test("in English it is said as the server said it", async () => {
  await inLanguage("en");

  expect(inWords(HELD)).toBe(HELD.text);
});

test("what is not known here is said in the server's words, alone or within another sentence", async () => {
  await inLanguage("zh-CN");
  const strange: Sentence = { code: "FROM_A_NEWER_SERVER", text: "the moon is full", params: {} };

  expect(inWords(strange)).toBe("the moon is full");
  expect(inWords({ ...HELD, params: { ...HELD.params, hold: strange } })).toBe("实例 5 被挂起：the moon is full。");
  expect(wordsOf("a text of old", undefined)).toBe("a text of old");
});

test("what a hostile parameter holds is text and no place", async () => {
  await inLanguage("zh-CN");
  const noted: Sentence = { code: "NOTED", text: " (x)", params: { note: "{{note}} $t(common:yes) $& <b>" } };

  expect(inWords(noted)).toBe("（{{note}} $t(common:yes) $& <b>）");
});

test("numbers in texts have separators, and ids in what the server says have none", async () => {
  await inLanguage("en");
  expect(i18next.t("table.all", { count: 43_200 })).toBe("43,200 in all");
  await inLanguage("zh-CN");
  expect(i18next.t("table.all", { count: 43_200 })).toContain("43,200");
  expect(inWords({ code: "INSTANCE", text: "instance 43200", params: { instance: 43_200, key: "" } })).toBe("实例 43200");
});

function holder(instance: number): Sentence {
  return { code: "HOLDER", text: `instance ${instance} of slow`, params: { instance, job: "slow" } };
}

test("the instances that a sentence names are found within all its sentences, each once", () => {
  const clogged: Sentence = {
    code: "QUEUE_CLOGGED",
    text: "…",
    params: { queue: "7", limit: 3, holders: { code: "LISTED", text: "…", params: { parts: [holder(703), holder(12), holder(703)] } } },
  };
  expect(instancesIn(clogged)).toEqual(["703", "12"]);
  expect(instancesIn({ code: "X", text: "x", params: { instance: "<img>" } })).toEqual([]);
});
