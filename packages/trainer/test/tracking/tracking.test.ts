/** What a run tells reaches every logger once and in order, and a logger that fails harms nobody else. */

import { open, readdir, readFile, realpath, rm, writeFile } from "node:fs/promises";
import type { FileHandle } from "node:fs/promises";
import { join } from "node:path";
import { afterEach, expect, onTestFinished, test, vi } from "vitest";
import {
  Tracking,
  type TrackedRun,
  type TrackingError,
  type TrackingLogger,
} from "@rayling/trainer";
import { loggerNames } from "../../src/config/verl/logger-names.ts";
import { mlflowServer } from "./mlflow-server.ts";
import { optionsIn, runFolder, samplesOf, valid } from "./run-folder.ts";

afterEach(() => vi.unstubAllEnvs());

/** Notes what it is told, a turn of the loop after it was told. */
function noting(notes: string[], name = "noting"): TrackingLogger {
  const note = async (what: string): Promise<void> => {
    await new Promise(setImmediate);
    notes.push(what);
  };
  return {
    name,
    open: ({ experimentName, totalSteps }) => note(`open ${experimentName} ${totalSteps}`),
    log: (metrics, step) => note(`log ${step} ${JSON.stringify(metrics)}`),
    phase: ({ name: phase, step }) => note(`phase ${step} ${phase}`),
    samples: (step, samples) => note(`samples ${step} ${samples.length}`),
    generations: (step, rows) => note(`generations ${step} ${rows.length}`),
    progress: ({ step }) => note(`progress ${step}`),
    close: () => note("close"),
  };
}

test("a logger is told everything, once, in order, one thing at a time", async () => {
  const notes: string[] = [];
  const directory = await runFolder();
  const tracking = await Tracking.open(
    optionsIn(directory, { logger: [], loggers: [noting(notes)] }),
  );
  const metrics = { a: 1 };
  tracking.progress({ step: 1 });
  tracking.phase({ step: 1, name: "gen", startMs: 0, endMs: 1 });
  tracking.samples(1, samplesOf([valid(1), valid(2)]));
  tracking.log(metrics, 1);
  metrics.a = 2;
  tracking.generations(1, [{ input: "i", output: "o", score: 1 }]);
  await Promise.all([tracking.close(), tracking.close()]);
  tracking.log({ late: 1 }, 2);
  expect(notes).toEqual([
    "open grpo 4",
    "progress 1",
    "phase 1 gen",
    "samples 1 2",
    'log 1 {"a":1}',
    "generations 1 1",
    "close",
  ]);
});

test("a logger that fails is warned of once and told nothing more; the others miss nothing", async () => {
  const notes: string[] = [];
  const warnings: TrackingError[] = [];
  let told = 0;
  const failing: TrackingLogger = {
    name: "failing",
    log: () => {
      told += 1;
      throw new Error("disk full");
    },
    close: () => Promise.reject(new Error("disk still full")),
  };
  const tracking = await Tracking.open(
    optionsIn(await runFolder(), {
      logger: [],
      loggers: [failing, noting(notes)],
      onWarning: (warning) => warnings.push(warning),
    }),
  );
  tracking.log({}, 1);
  tracking.log({}, 2);
  await tracking.close();
  expect(told).toBe(1);
  expect(warnings).toMatchObject([
    {
      code: "TRACKING_FAILED",
      logger: "failing",
      message: expect.stringContaining("disk full") as string,
    },
  ]);
  expect(notes).toEqual(["open grpo 4", "log 1 {}", "log 2 {}", "close"]);
});

test("a logger that cannot begin keeps the run from starting, and those that had begun are closed", async () => {
  const notes: string[] = [];
  const refusing: TrackingLogger = {
    name: "refusing",
    open: () => Promise.reject(new Error("no key")),
  };
  const loggers = [noting(notes), refusing, noting(notes, "after")];
  const opening = Tracking.open(optionsIn(await runFolder(), { logger: [], loggers }));
  await expect(opening).rejects.toMatchObject({ code: "TRACKING_OPEN", logger: "refusing" });
  expect(notes).toEqual(["open grpo 4", "close"]);
});

test("no logger gets a secret of the settings, and no file and no server has one", async () => {
  const [directory, server] = [await runFolder(), await mlflowServer()];
  vi.stubEnv("TRACKIO_DIR", join(directory, "trackio"));
  vi.stubEnv("MLFLOW_TRACKING_URI", server.uri);
  const kwargs = "{api_key: sk-SECRET, base_url: 'https://me:pw-SECRET@host/v1'}";
  const argv = vi.spyOn(process, "argv", "get");
  argv.mockReturnValue(["/bin/node", "t.ts", `policy_kwargs=${kwargs}`, "h=[[X, Bearer SECRET]]"]);
  const config = {
    policy_kwargs: { api_key: "sk-SECRET", base_url: "https://me:pw-SECRET@host/v1", n: 1 },
    headers: { authorization: "Bearer SECRET" },
  };
  const runs: TrackedRun[] = [];
  const warnings: string[] = [];
  const own: TrackingLogger = { name: "own", open: (run) => void runs.push(run) };
  const logger = loggerNames.filter((name) => !["console", "prometheus"].includes(name));
  const tracking = await Tracking.open(
    optionsIn(directory, {
      logger,
      loggers: [own],
      config,
      onWarning: ({ message }) => warnings.push(message),
    }),
  );
  argv.mockRestore();
  tracking.log({ "critic/score/mean": 1 }, 1);
  await tracking.close();
  expect(warnings).toEqual([]);
  const shown = { api_key: "***", base_url: "https://***@host/v1", n: 1 };
  expect(runs).toMatchObject([
    {
      config: { policy_kwargs: shown, headers: { authorization: "***" } },
      command: `node t.ts 'policy_kwargs={api_key: ***, base_url: '\\''https://***@host/v1'\\''}' 'h=[[X, ***]]'`,
    },
  ]);
  expect(server.params.get("policy_kwargs/api_key")).toBe("***");
  expect(JSON.stringify([...server.params])).not.toContain("SECRET");
  const entries = await readdir(directory, { recursive: true, withFileTypes: true });
  const paths = entries.filter((one) => one.isFile()).map((one) => join(one.parentPath, one.name));
  // The lines of the run, its page, its trace, and files of TensorBoard, wandb and trackio.
  expect(paths.length).toBeGreaterThanOrEqual(8);
  for (const path of paths) expect(await readFile(path, "latin1"), path).not.toContain("SECRET");
});

test("loggers write where the run began, also when the directory changes under way", async () => {
  const [begun, elsewhere, before] = [await runFolder(), await runFolder(), process.cwd()];
  onTestFinished(() => process.chdir(before));
  process.chdir(begun);
  vi.stubEnv("TRACKIO_DIR", "trackio");
  const warnings: string[] = [];
  const tracking = await Tracking.open(
    optionsIn("run", {
      logger: ["file", "tensorboard", "wandb", "trackio", "report", "trace"],
      onWarning: ({ message }) => warnings.push(message),
    }),
  );
  process.chdir(elsewhere);
  tracking.log({ "critic/score/mean": 1 }, 1);
  tracking.generations(1, [{ input: "i", output: "o", score: 1 }]);
  await tracking.close();
  expect(warnings).toEqual([]);
  expect(await readdir(elsewhere)).toEqual([]);
  expect(await readdir(join(begun, "run"))).toEqual(
    expect.arrayContaining(["metrics.jsonl", "report.html", "trace.json"]),
  );
  expect(tracking.run.directory).toBe(join(await realpath(begun), "run"));
});

test("a logger whose disk is full is warned of with the path of its file", async () => {
  const directory = await runFolder();
  vi.stubEnv("TRACKIO_DIR", join(directory, "trackio"));
  const warnings: string[] = [];
  const tracking = await Tracking.open(
    optionsIn(directory, {
      logger: ["tensorboard", "wandb", "trackio"],
      onWarning: ({ message }) => warnings.push(message),
    }),
  );
  // Nothing can be written to files that are open, as where the disk has become full.
  const handle = await open(join(directory, "other"), "a");
  const appendFile = vi.spyOn(Object.getPrototypeOf(handle) as FileHandle, "appendFile");
  await handle.close();
  onTestFinished(() => appendFile.mockRestore());
  appendFile.mockRejectedValue(new Error("ENOSPC: no space left on device, write"));
  // Nor can trackio's fragments.
  await rm(join(directory, "trackio"), { recursive: true });
  await writeFile(join(directory, "trackio"), "");
  for (const step of [1, 2, 3]) tracking.log({ "critic/score/mean": 1 }, step);
  await tracking.close();
  const path = directory.replaceAll("/", "\\/");
  expect(warnings).toEqual([
    expect.stringMatching(`"tensorboard": .*${path}.*tfevents.*cannot be written: ENOSPC`),
    expect.stringMatching(`"wandb": .*${path}.*run-.*\\.wandb.*cannot be written: ENOSPC`),
    expect.stringMatching(`"trackio": .*${path}.*\\.jsonl.*cannot be written: E(NOTDIR|EXIST)`),
  ]);
});

test("a name that is none is refused with those that there are, and so is a folder that cannot be made", async () => {
  const directory = await runFolder();
  const unknown = Tracking.open(optionsIn(directory, { logger: ["tenserboard"] as never }));
  await expect(unknown).rejects.toThrow(
    /"tenserboard": there is no logger of this name; there are console, file/,
  );
  const verls = Tracking.open(optionsIn(directory, { logger: ["swanlab"] as never }));
  await expect(verls).rejects.toThrow(
    /"swanlab": verl's logger is not here; there are console, file/,
  );
  await writeFile(join(directory, "file"), "");
  const nowhere = Tracking.open(optionsIn(join(directory, "file", "run")));
  await expect(nowhere).rejects.toMatchObject({ code: "TRACKING_OPEN", logger: "directory" });
});

test("a logger that never ends is left behind, with a warning", async () => {
  const warnings: TrackingError[] = [];
  const never: TrackingLogger = { name: "never", log: () => new Promise(() => undefined) };
  const options = { logger: [], loggers: [never], closeTimeoutMs: 20 } as const;
  const tracking = await Tracking.open(
    optionsIn(await runFolder(), { ...options, onWarning: (warning) => warnings.push(warning) }),
  );
  tracking.log({}, 1);
  await tracking.close();
  expect(warnings).toMatchObject([{ code: "TRACKING_FAILED", logger: "never" }]);
});

test("the clock goes on and tells the time of day", async () => {
  await using tracking = await Tracking.open(optionsIn(await runFolder(), { logger: [] }));
  const times = Array.from({ length: 1000 }, () => tracking.now());
  expect(times).toEqual(times.toSorted((a, b) => a - b));
  expect(new Date(times[0] as number).getUTCFullYear()).toBeGreaterThan(2024);
});
