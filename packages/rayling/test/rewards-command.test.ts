/** `rayling rewards report`: what a log says, as a table, as data, as a page. */

import { readFile, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { expect, test } from "vitest";
import { folder, inProcess } from "./command.ts";

const line = (index: number, more: object): string =>
  JSON.stringify({
    index,
    sample: `sample ${index}`,
    group: null,
    version: "v1",
    at: new Date(1_700_000_000_000 + 1000 * index).toISOString(),
    lane: "training",
    valid: true,
    score: 1,
    error: null,
    errorClass: null,
    attempts: 1,
    waitedMs: 5,
    latencyMs: 10 * (index + 1),
    cost: 0.25,
    cached: false,
    usage: { inputTokens: 100, outputTokens: 10, totalTokens: 110 },
    extra: {},
    ...more,
  });

const failed = (message: string): object => ({
  valid: false,
  score: null,
  error: { code: "SCORE_THREW", name: "Error", message },
  errorClass: "infrastructure",
  attempts: 3,
  usage: null,
});

async function logOf(...lines: readonly string[]): Promise<string> {
  const path = join(await folder(), "rewards.jsonl");
  await writeFile(path, `${lines.join("\n")}\n`);
  return path;
}

test("counts what counts, and shows failures and versions", async () => {
  const log = await logOf(
    line(0, {}),
    line(1, failed("down")),
    line(2, failed("down\u001b[31m again")),
    line(3, { score: 0, version: "v2" }),
    line(1, { score: 0.5, version: "v2" }),
  );
  const { code, stdout } = await inProcess("rewards", "report", log);
  expect(code).toBe(0);
  for (const [name, value] of [
    ["samples", "4"],
    ["valid", "3"],
    ["invalid", "1"],
    ["scored again", "1"],
    ["mean score", "0.5000"],
    ["calls", "9"],
    ["latency p50 / p95 / p99", "20 ms / 40 ms / 40 ms"],
    ["tokens in / out", "300 / 30"],
    ["cost", "1.2500"],
    ["outcomes per second", "1.7"],
  ] as const) {
    expect(stdout).toMatch(new RegExp(`^${name} +${value}$`, "m"));
  }
  expect(stdout).toMatch(/^1 +infrastructure +SCORE_THREW +down.\[31m again$/m);
  expect(stdout).toMatch(/^v2 +2 +0.2500$/m);
  expect(stdout).not.toContain("\u001b");
  const json = await inProcess("rewards", "report", log, "--format", "json");
  expect(JSON.parse(json.stdout)).toMatchObject({
    samples: 4,
    superseded: 1,
    failures: [{ class: "infrastructure", code: "SCORE_THREW", count: 1 }],
  });
});

test("as a page: figures and plots, and no text of others as markup", async () => {
  const log = await logOf(line(0, {}), line(1, failed("<script>alert(1)</script>")));
  const html = join(await folder(), "rewards.html");
  expect((await inProcess("rewards", "report", log, "--html", html)).code).toBe(0);
  const page = await readFile(html, "utf8");
  for (const title of ["Throughput", "Latency", "Failures", "Cost"]) {
    expect(page).toContain(`aria-label="${title}"`);
  }
  expect(page.match(/<polyline [^>]*points="[\d., ]+"/g)).toHaveLength(5);
  expect(page).toContain("&lt;script&gt;alert(1)&lt;/script&gt;");
  expect(page).not.toContain("<script>");
});

test("is never written over by what is made of it", async () => {
  const log = await logOf(line(0, {}));
  const before = await readFile(log, "utf8");
  const overPage = await inProcess("rewards", "report", log, "--html", log);
  expect(overPage).toMatchObject({ code: 2, stdout: "" });
  expect(overPage.stderr).toContain("is the log itself");
  const overTable = await inProcess("rewards", "export", log, "--out", log);
  expect(overTable).toMatchObject({ code: 2, stdout: "" });
  expect(await readFile(log, "utf8")).toBe(before);
});

test.each([
  ["export", "x.jsonl", "--out", "-"],
  ["export", "-"],
  ["report", "x.jsonl", "--html", "-"],
  ["report", "-"],
  ["show", "-"],
  ["view", "x.jsonl", "-"],
  ["compare", "x.jsonl", "--labels", "-"],
  ["rescore", "-"],
])("rewards %s: - is no file, and is refused as a stream", async (...args) => {
  const { code, stdout, stderr } = await inProcess("rewards", ...args);
  expect({ code, stdout }).toEqual({ code: 2, stdout: "" });
  expect(stderr).toMatch(/'-' is invalid.*not standard input or output; .\/- is the file/);
});

test("an empty log says so; what is no log is refused with its line", async () => {
  const empty = await inProcess("rewards", "report", await logOf(""));
  expect(empty).toMatchObject({
    code: 0,
    stdout: expect.stringMatching(/^samples +0$/m) as string,
  });
  const wrong = await logOf(line(0, {}), '{"index": 1}');
  const refused = await inProcess("rewards", "report", wrong);
  expect(refused).toMatchObject({ code: 2, stdout: "" });
  expect(refused.stderr).toBe(`rayling: ${wrong}:2: the line is no record of a reward.\n`);
  const missing = await inProcess("rewards", "report", "/no/such/log");
  expect(missing).toMatchObject({ code: 2, stdout: "" });
  const nowhere = await inProcess(
    "rewards",
    "report",
    await logOf(line(0, {})),
    "--html",
    "/no/such/x",
  );
  expect(nowhere).toMatchObject({ code: 2, stdout: "" });
});
