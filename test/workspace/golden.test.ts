/** Every file of verl's numbers has a test that holds ours against it: one without fails here, a function without fails there. */
import { globSync, readFileSync } from "node:fs";
import { basename, join } from "node:path";
import { expect, test } from "vitest";
import { goldenDir } from "../fixtures/golden.ts";
import { root } from "./source.ts";

const adapters: Readonly<Record<string, readonly string[]>> = {
  "advantages.json": ["packages/trainer/test/advantages.test.ts"],
  "async-reward-agent.json": ["packages/reward-loop/test/agent/async-reward-agent.test.ts"],
  "dapo-overlong.json": ["packages/reward-manager-registry/test/dapo.test.ts"],
  "data-metrics.json": ["packages/trainer/test/metrics.test.ts"],
  "data-proto.json": ["packages/data-proto/test/golden.test.ts"],
  "kl-and-value.json": ["packages/trainer/test/kl-and-value.test.ts"],
  "metrics.json": ["packages/trainer/test/metrics.test.ts"],
  "policy-losses.json": ["packages/trainer/test/policy-losses.test.ts"],
  "reward-scores.json": [
    "packages/reward-manager-registry/test/golden.test.ts",
    "packages/reward-loop/test/reward-model/router.test.ts",
  ],
  "rollout-correction.json": ["packages/trainer/test/rollout-correction.test.ts"],
  "seqlen-balance.json": ["packages/trainer/test/balance.test.ts"],
  "token-bucket.json": ["packages/reward-loop/test/limits/limits.test.ts"],
  "torch-functional.json": ["packages/trainer/test/torch-functional.test.ts"],
  "validation-metrics.json": ["packages/trainer/test/metrics.test.ts"],
};

const files = globSync("**/*.json", { cwd: goldenDir }).map((path) => basename(path));

test("there are files", () => {
  expect(files).not.toEqual([]);
});

test.each(files)("%s has its adapters", (file) => {
  const tests = Object.hasOwn(adapters, file) ? adapters[file] : undefined;
  expect(tests, `${file} is in no test`).toBeDefined();
  for (const path of tests ?? []) {
    expect(readFileSync(join(root, path), "utf8")).toContain(`goldenFile("${file}")`);
  }
});
