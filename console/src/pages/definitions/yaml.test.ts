import { expect, test } from "vitest";
import { dump, lineAt, type Literal, load, parseLiterally, YamlFault } from "./yaml";

const JSONS = [
  '{"kind":"job","n":1.10,"big":12345678901234567890,"e":1e5,"text":"1e5","word":"yes","day":"2026-01-01"}',
  '{"name":"日报","cron":"0 9 * * *","nested":{"a":[1,{"b":null,"c":[]}],"d":{}},"empty":"","lines":"a\\nb: - #"}',
  '{"tags":["a","- b"," c "],"list":[[1,2],["x"]],"true":false}',
];

test("a definition comes back from YAML to the letter", () => {
  for (const text of JSONS) {
    const [document] = load(dump([parseLiterally(text) as { [name: string]: Literal }]));
    expect(document?.text).toBe(text);
  }
});

test("each field has its line, and an unknown one that of the closest value around it", () => {
  const [, second] = load("kind: queue\nname: q\n---\nkind: job\nretry:\n  base: 5x\nnodes:\n  - name: a\n");
  expect([lineAt(second!, "retry.base"), lineAt(second!, "retry.cap"), lineAt(second!, "nodes.0.job"), lineAt(second!, "x")]).toEqual([6, 5, 8, 4]);
});

test("a text that is not a list of definitions is refused at its line", () => {
  const wrong = [
    ["a: [1\n", 2, "syntax"],
    ["a: 1\na: 2\n", 2, "syntax"],
    ["- 1\n", 1, "mapping"],
    ["a: &x 1\nb: *x\n", 2, "alias"],
  ] as const;
  for (const [text, line, reason] of wrong) {
    const fault = faultOf(text);
    expect(fault).toBeInstanceOf(YamlFault);
    expect([(fault as YamlFault).line, (fault as YamlFault).reason]).toEqual([line, reason]);
  }
});

function faultOf(text: string): unknown {
  try {
    return load(text);
  } catch (caught) {
    return caught;
  }
}
