/**
 * The example of verl with a judge in TypeScript, on a real Ray of three nodes. In the full suite
 * alone, because it asks PyPI for verl, and starts a cluster.
 */
import { expect, test, vi } from "vitest";
import {
  checkoutEnv,
  pythonFolder,
  runProgram,
} from "../../../rayling/test/python/python-commands.ts";
import { rayEnv } from "../../../rayling/test/python/python-venv.ts";
import { tookSince } from "./figures.ts";
import { oneCluster } from "./one-cluster.ts";

vi.setConfig({ testTimeout: 900_000, hookTimeout: 1_800_000 });

/** Python has the package `rayling` there, and Node. */
const env = { ...checkoutEnv, ...rayEnv };

// verl imports cachetools and does not name it.
const { python, there } = oneCluster(
  { nodes: [{ num_cpus: 2 }, { num_cpus: 2 }, { num_cpus: 2 }], env },
  ["verl==0.9.1", "cachetools", "pytest"],
);

test("verl's workers on the cluster score their rollouts with the judge", async ({ skip }) => {
  const running = there(skip);
  const startMs = performance.now();
  const { stdout } = await runProgram(
    python(skip),
    ["-B", `${pythonFolder}/../examples/python/verl_judge/run.py`],
    {
      ...env,
      RAY_ADDRESS: await running.do<string>("gcs"),
      RAY_AUTH_MODE: "token",
      RAY_AUTH_TOKEN_PATH: running.tokenPath,
    },
  );
  tookSince(startMs, "the example of verl on three nodes");
  const said = /^64 rollouts, (?<right>\d+) right, (?<missing>\d+) without a score/m.exec(stdout);
  const [right, missing] = [Number(said?.groups?.["right"]), Number(said?.groups?.["missing"])];
  // Every second answer is right; a judge that fails five times leaves one without a score.
  expect(right).toBeLessThanOrEqual(32);
  expect(right + missing).toBeGreaterThanOrEqual(32);
});
