/**
 * Runs as the clients of MLflow, wandb and trackio read them. In the full suite alone, because PyPI is asked
 * for these; the gate has a server of its own, and reads wandb's log by its format.
 */

import { spawn } from "node:child_process";
import { readdir } from "node:fs/promises";
import { join } from "node:path";
import { createInterface } from "node:readline";
import { expect, onTestFinished, test, vi } from "vitest";
import { MlflowLogger, Tracking } from "@rayling/trainer";
import { runProgram } from "../../../rayling/test/python/python-commands.ts";
import { orSkip, pythonWith } from "../../../rayling/test/python/python-venv.ts";
import { optionsIn, runFolder } from "./run-folder.ts";
import { wandbServer } from "./wandb-server.ts";

vi.setConfig({ testTimeout: 1_200_000 });

const config = { trainer: { project_name: "maths", logger: ["mlflow"] }, algorithm: { gamma: 1 } };

/** Three steps, of which the second is logged again by a resumed run, and a validation. */
function reported(tracking: Tracking, steps: readonly number[]): void {
  for (const step of steps) {
    tracking.log({ "critic/score/mean": step / 4, "val-core/a/mean@1": NaN }, step);
  }
  tracking.generations(3, [{ input: "1 + 1 =", output: "zwei \u{1f600}", score: 0.5 }]);
}

/** Starts a real server; resolves to its address when it listens. */
async function mlflowServer(python: string, folder: string): Promise<string> {
  const args = ["-m", "mlflow", "server", "--host", "127.0.0.1", "--port", "0", "--workers", "1"];
  const store = ["--backend-store-uri", "sqlite:///runs.db", "--artifacts-destination", "kept"];
  const server = spawn(python, [...args, ...store], {
    cwd: folder,
    detached: true,
    stdio: ["ignore", "ignore", "pipe"],
  });
  onTestFinished(async () => {
    const gone = new Promise((resolve) => server.once("close", resolve));
    if (server.pid !== undefined) process.kill(-server.pid, "SIGKILL");
    await gone;
  });
  for await (const line of createInterface(server.stderr)) {
    const [address] = /http:\/\/127\.0\.0\.1:\d+/.exec(line) ?? [];
    if (address !== undefined && line.includes("running on")) {
      server.stderr.resume();
      return address;
    }
  }
  throw new Error("the MLflow server ended");
}

test("MLflow's own client reads the settings, the curves, the samples and the end", async ({
  skip,
}) => {
  const python = orSkip(await pythonWith(["mlflow"]), skip);
  const [folder, directory] = [await runFolder(), await runFolder()];
  const trackingUri = await mlflowServer(python, folder);
  const onWarning = (warning: Error): never => expect.unreachable(warning.message);
  for (const steps of [
    [1, 2],
    [2, 3],
  ]) {
    const options = { logger: [], loggers: [new MlflowLogger({ trackingUri })], config, onWarning };
    await using tracking = await Tracking.open(optionsIn(directory, options));
    reported(tracking, steps);
  }
  const script = join(import.meta.dirname, "read-mlflow.py");
  const { stdout } = await runProgram(python, [script, trackingUri, "maths", folder]);
  expect(JSON.parse(stdout.replaceAll("NaN", "null"))).toEqual({
    name: "grpo",
    status: "FINISHED",
    params: {
      "trainer/project_name": "maths",
      "trainer/logger/list_len": "1",
      "trainer/logger/0": "mlflow",
      "algorithm/gamma": "1",
    },
    histories: {
      "critic/score/mean": [
        [1, 0.25],
        [2, 0.5],
        [2, 0.5],
        [3, 0.75],
      ],
      "val-core/a/mean_at_1": [1, 2, 2, 3].map((step) => [step, null]),
    },
    artifact: "val_step3.json",
    rows: [{ input: "1 + 1 =", output: "zwei \u{1f600}", score: 0.5 }],
  });
});

/** An offline run with three steps; resolves to its folder. */
async function wandbRun(directory: string): Promise<string> {
  await using tracking = await Tracking.open(optionsIn(directory, { logger: "wandb", config }));
  reported(tracking, [1, 2, 3]);
  await tracking.close();
  const [name = ""] = await readdir(join(directory, "wandb"));
  return join(directory, "wandb", name);
}

const rowOf = (step: number): object => ({
  "critic/score/mean": step / 4,
  "val-core/a/mean@1": "NaN",
});

test("wandb's own reader of transaction logs reads the run (the last release that has it)", async ({
  skip,
}) => {
  const python = orSkip(await pythonWith(["wandb==0.22.3"]), skip);
  const folder = await wandbRun(await runFolder());
  const log = join(folder, `run-${folder.slice(-8)}.wandb`);
  const { stdout } = await runProgram(python, [join(import.meta.dirname, "read-wandb.py"), log]);
  const records = stdout
    .trim()
    .split("\n")
    .map((line) => JSON.parse(line) as Record<string, unknown>);
  expect(records.map(({ num }) => num)).toEqual(records.map((_, index) => String(index + 1)));
  const kinds = records.map((one) => Object.keys(one).find((key) => key !== "num"));
  const row = ["history", "summary"];
  expect(kinds).toEqual(["header", "run", ...row, "files", ...row, ...row, "exit"]);
  expect(records[1]?.["run"]).toMatchObject({
    run_id: folder.slice(-8),
    project: "maths",
    display_name: "grpo",
    config: { update: [{ key: "trainer" }, { key: "algorithm", value_json: '{"gamma":1}' }] },
  });
});

test("wandb's own client uploads the run: settings, curves, samples", async ({ skip }) => {
  const python = orSkip(await pythonWith(["wandb"]), skip);
  const home = await runFolder();
  const folder = await wandbRun(await runFolder());
  const server = await wandbServer();
  const env = {
    WANDB_BASE_URL: server.uri,
    WANDB_API_KEY: "a".repeat(40),
    HOME: home,
    WANDB_DIR: home,
  };
  await runProgram(python, ["-m", "wandb", "sync", folder], env);
  expect(server.runs[0]).toMatchObject({ project: "maths", displayName: "grpo" });
  expect(server.rows).toMatchObject([1, 2, 3].map((step) => ({ _step: step, ...rowOf(step) })));
  const table = server.rows[2]?.["val/generations"] as { readonly path: string };
  expect(JSON.parse(server.files.get(table.path) ?? "")).toMatchObject({
    data: [[3, "1 + 1 =", "zwei \u{1f600}", 0.5]],
  });
  expect(server.files.get("config.yaml")).toContain("gamma: 1");
  expect(server.files.get("wandb-summary.json")).toContain('"critic/score/mean":0.75');
});

test("trackio takes its inbox, and its own client reads the settings, the curves and the samples", async ({
  skip,
}) => {
  const python = orSkip(await pythonWith(["trackio"]), skip);
  const folder = await runFolder();
  vi.stubEnv("TRACKIO_DIR", folder);
  onTestFinished(() => void vi.unstubAllEnvs());
  {
    const options = { logger: "trackio" as const, config };
    await using tracking = await Tracking.open(optionsIn(await runFolder(), options));
    reported(tracking, [1, 2, 3]);
  }
  const script = join(import.meta.dirname, "read-trackio.py");
  const { stdout } = await runProgram(python, [script, "maths"], { TRACKIO_DIR: folder });
  const read = JSON.parse(stdout.replaceAll("NaN", "null")) as {
    readonly rows: readonly Readonly<Record<string, unknown>>[];
    readonly traces: unknown;
  };
  expect(read).toMatchObject({ taken: 4, left: [], name: "grpo", config });
  const scores = read.rows.flatMap((row) => {
    const score = row["critic/score/mean"];
    return score === undefined ? [] : [[row["step"], score, row["val-core/a/mean@1"]]];
  });
  expect(scores).toEqual([1, 2, 3].map((step) => [step, step / 4, null]));
  expect(JSON.stringify(read.traces)).toContain("zwei");
});
