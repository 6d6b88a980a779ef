/** Every example runs as its first line says, ends by itself and prints something worth reading. */
import { execFile } from "node:child_process";
import { globSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { promisify } from "node:util";
import { describe, expect, test } from "vitest";
import { withoutWaits } from "../fixtures/waits.ts";
import { root } from "../workspace/source.ts";
import { sized } from "../fixtures/suite.ts";

const run = promisify(execFile);
const examples = globSync("examples/{actors,cookbook,rewards,training}/*.ts", {
  cwd: root,
}).toSorted();
const firstLine = (path: string): string =>
  readFileSync(join(root, path), "utf8").split("\n")[0] ?? "";
const programs = examples.filter((path) => firstLine(path) === `// node ${path}`);
/**
 * test/workspace/packed.test.ts runs the counter from the tarballs, and readme.test.ts as README has it.
 *
 * The others train: the quickstart learns the same task, and .ci/run runs it behind the gate; trainings go
 * on in fit/resume.test.ts, and a task of one's own trains in the gate as an estimator would.
 */
const inFullOnly = [
  "examples/actors/counter.ts",
  "examples/training/grpo-arithmetic.ts",
  "examples/training/resume.ts",
  "examples/training/custom-estimator.ts",
];
const chosen = sized({
  gate: programs.filter((path) => !inFullOnly.includes(path)),
  full: programs,
});

test("every example says on its first line how to run it", () => {
  expect(
    examples.filter((path) => !/^\/\/ (node|pnpm start:score) /.test(firstLine(path))),
  ).toEqual([]);
  expect(programs.length).toBeGreaterThan(1);
});

/** What makes an example that trains a brief one. */
const briefly: Readonly<Record<string, readonly string[]>> = {
  "examples/cookbook/own-task.ts": ["2", "5"],
  "examples/cookbook/pool-with-progress.ts": ["8", "1000"],
};

describe("examples run", () => {
  test.each(chosen)("node %s", async (path) => {
    const args = sized({ gate: briefly[path] ?? [], full: [] });
    const { stdout, stderr } = await run(process.execPath, [path, ...args], { cwd: root });
    expect(stdout.trim()).not.toBe("");
    expect(withoutWaits(stderr)).toBe("");
  });

  test("and the generated problems are the committed ones, to the byte", async () => {
    const { stdout } = await run("git", ["status", "--porcelain", "examples/data"], { cwd: root });
    expect(stdout).toBe("");
  });
});
