/** `rayling quickstart`: both schedules are trained from the same start, a table says what it came to, and pages and traces are where it says. */

import { existsSync } from "node:fs";
import { readFile } from "node:fs/promises";
import { join } from "node:path";
import { expect, test } from "vitest";
import { folder, inProcess, rayling } from "./command.ts";

test("a short one: table, pages, traces", async () => {
  const out = join(await folder(), "runs");
  const flags = ["--steps", "2", "--warm-steps", "2", "--latency", "4", "--out", out];
  const { code, stdout } = await rayling("quickstart", ...flags);
  expect(code).toBe(0);
  expect(stdout).toMatch(/^sync +[\d.]+ s +- +[\d.]+ % +[\d.]+ % +[\d.]+ s +[\d.]+ %$/m);
  expect(stdout).toMatch(/^one-step-off-policy +[\d.]+ s +[-+][\d.]+ % +[\d.]+ %/m);
  for (const schedule of ["sync", "one-step-off-policy"]) {
    expect(stdout).toContain(join(out, schedule, "report.html"));
    expect(existsSync(join(out, schedule, "report.html"))).toBe(true);
    const trace = await readFile(join(out, schedule, "trace.json"), "utf8");
    expect(JSON.parse(trace)).toBeTypeOf("object");
  }
});

test("an unknown schedule is one clear line", async () => {
  const { code, stderr } = await inProcess("quickstart", "--schedule", "sink");
  expect(code).toBe(2);
  expect(stderr).toBe(
    'rayling: --schedule takes sync, one-step-off-policy, mini-batch-pipeline, one-step-pipeline, streaming, not "sink"\n',
  );
});
