/** Each adapter of examples/judges, run by its own command against a judge server that fails now and then. */

import { execFile } from "node:child_process";
import { globSync } from "node:fs";
import { mkdtemp, readFile, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";
import { expect, onTestFinished, test, vi } from "vitest";
import { startJudge } from "../servers/judge.ts";
import { inFull, sized } from "../fixtures/suite.ts";

vi.setConfig({ testTimeout: 120_000 });

const root = fileURLToPath(new URL("../../", import.meta.url));
const adapters = globSync("examples/judges/*.ts", { cwd: root }).toSorted();
const run = promisify(execFile);

/** Problems with four solutions each. */
const problems = sized({ gate: 40, full: 640 });

interface Line {
  readonly attempts: number;
  readonly usage: { readonly outputTokens: number } | null;
}

const one = ["--baseline", "0", "--workers", "1"];

/** By the command that the example begins with. */
async function scored(
  path: string,
  judgeUrl: string,
  folder: string,
): Promise<{ readonly stdout: string; readonly records: readonly Line[] }> {
  const out = join(folder, "rewards.jsonl");
  const input = join(folder, "solutions.jsonl");
  const all = await readFile(join(root, "examples/data/arithmetic-solutions.jsonl"), "utf8");
  await writeFile(input, all.split("\n").slice(0, problems).join("\n"));
  const [, command = ""] =
    /pnpm rayling (score .*)/.exec(await readFile(join(root, path), "utf8")) ?? [];
  const args = command.replace("solutions.jsonl", input).split(" ");
  const { stdout } = await run(
    process.execPath,
    ["packages/rayling/dist/cli/main.js", ...args, "--out", out, ...one],
    { cwd: root, env: { ...process.env, JUDGE_URL: judgeUrl } },
  );
  const lines = (await readFile(out, "utf8")).trimEnd().split("\n");
  return { stdout, records: lines.map((line) => JSON.parse(line) as Line) };
}

test("there are four of them", () => {
  expect(adapters.map((path) => path.replace("examples/judges/", ""))).toEqual([
    "ai-sdk.ts",
    "autoevals.ts",
    "openai-sdk.ts",
    "plain-http.ts",
  ]);
});

/** One with an SDK, and one without; each of them starts the command. */
const inGate = adapters.filter((path) => /\/ai-sdk|plain-http/.test(path));
test.each(sized({ gate: inGate, full: adapters }))(
  "%s scores all samples, though half of the answers are no clean JSON",
  async (path) => {
    const folder = await mkdtemp(join(tmpdir(), "rayling-judges-"));
    onTestFinished(() => rm(folder, { recursive: true }));
    await using judge = await startJudge({
      seed: 5,
      latency: { uniform: [1, 5] },
      reward: join(root, "examples/rewards/arithmetic-reward.ts"),
      faults: { refuse: 0.1, error: 0.1, cut: 0.05, malformed: 0.05 },
      speech: { prose: 0.25, fenced: 0.25 },
    });
    const { stdout, records } = await scored(path, judge.baseUrl, folder);
    const count = (4 * problems).toLocaleString("en-US");
    expect(stdout).toContain(`is_correct: ${count} of ${count} samples have a score that agrees`);
    expect(stdout).toMatch(/^invalid \(no score\) +0$/m);
    expect(records).toHaveLength(4 * problems);
    const { failed, answered } = await judge.stats();
    // A quarter is asked again, and all of that is paid for: ten tokens each. autoevals does not say what it used.
    expect(answered).toBeGreaterThan(4.5 * problems);
    const tokens = records.reduce((sum, { usage }) => sum + (usage?.outputTokens ?? 0), 0);
    expect(tokens).toBe(path.includes("autoevals") ? 0 : 10 * answered);
    expect(Object.keys(failed).toSorted()).toEqual(["cut", "error", "malformed", "refuse"]);
  },
);

test.runIf(
  inFull(
    "it trains; packages/trainer/test/fit has trainings with judges that fail, and the adapters are asked above",
  ),
)("a training with rewards from a judge", async () => {
  const folder = await mkdtemp(join(tmpdir(), "rayling-judge-training-"));
  onTestFinished(() => rm(folder, { recursive: true }));
  await using judge = await startJudge({
    seed: 6,
    latency: { uniform: [1, 20] },
    reward: join(root, "examples/rewards/exact-match.ts"),
    faults: { refuse: 0.1, error: 0.1 },
  });
  const { stdout } = await run(
    process.execPath,
    ["examples/training/llm-judge-training.ts", judge.baseUrl, folder],
    { cwd: root },
  );
  expect(stdout.match(/^step \d: score [\d.]+, tried again [\d.]+, invalid 0\.000/gm)).toHaveLength(
    5,
  );
  expect(await readFile(join(folder, "report.html"), "utf8")).toContain('"lastStep":5');
  const { failed } = await judge.stats();
  expect(Object.keys(failed).toSorted()).toEqual(["error", "refuse"]);
});
