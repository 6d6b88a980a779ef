/** A run on an MLflow server: what arrives, what a server that is away loses, and what is refused. */

import { mkdir, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { expect, test, vi } from "vitest";
import { MlflowLogger, Tracking, type TrackingError, type TrackingOptions } from "@rayling/trainer";
import { Delivery, FailedReport } from "../../src/tracking/delivery.ts";
import type { Report } from "../../src/tracking/delivery.ts";
import { mlflowKey } from "../../src/tracking/mlflow/mlflow-keys.ts";
import { mlflowServer } from "./mlflow-server.ts";
import { optionsIn, runFolder } from "./run-folder.ts";
import { eventually } from "../../../../test/fixtures/eventually.ts";

interface Joinable extends Report {
  readonly steps: readonly number[];
}

interface Opened {
  readonly tracking: Tracking;
  readonly warnings: TrackingError[];
}

async function opened(
  directory: string,
  options: ConstructorParameters<typeof MlflowLogger>[0],
  more: Partial<TrackingOptions> = {},
): Promise<Opened> {
  const warnings: TrackingError[] = [];
  const tracking = await Tracking.open(
    optionsIn(directory, {
      logger: [],
      loggers: [new MlflowLogger({ pauseMs: 1, ...options })],
      onWarning: (warning) => warnings.push(warning),
      ...more,
    }),
  );
  return { tracking, warnings };
}

test("settings, metrics, generations and the end arrive, by verl's names", async () => {
  const server = await mlflowServer();
  const config = {
    trainer: { logger: ["mlflow"], save_freq: -1, val_only: false },
    data: { x: null },
  };
  const { tracking, warnings } = await opened(
    await runFolder(),
    { trackingUri: `${server.uri}/` },
    { config },
  );
  tracking.log({ "val-core/gsm8k/mean@1": 0.5, "actor/lr": 1e-6, "critic/x": NaN }, 1);
  tracking.log(Object.fromEntries(Array.from({ length: 1500 }, (_, at) => [`m/${at}`, at])), 2);
  tracking.generations(2, [{ input: "1+1", output: "2", score: NaN }]);
  await tracking.close();
  expect(warnings).toEqual([]);
  expect(Object.fromEntries(server.params)).toEqual({
    "trainer/logger/list_len": "1",
    "trainer/logger/0": "mlflow",
    "trainer/save_freq": "-1",
    "trainer/val_only": "False",
    "data/x": "None",
  });
  expect(server.metrics.get("val-core/gsm8k/mean_at_1 1")).toBe(0.5);
  expect(server.metrics.get("actor/lr 1")).toBe(1e-6);
  expect(server.metrics.get("critic/x 1")).toBe("NaN");
  expect(server.metrics.get("m/1499 2")).toBe(1499);
  expect(server.paths.filter((path) => path === "mlflow/runs/log-batch")).toHaveLength(4);
  expect([...server.artifacts]).toEqual([
    [
      "mlflow-artifacts/artifacts/1/r1/artifacts/val_step2.json",
      [{ input: "1+1", output: "2", score: null }],
    ],
  ]);
  expect(server.statuses).toEqual(["FINISHED"]);
});

test("a run that fails is FAILED, and a resumed one continues with its earlier parameters", async () => {
  const server = await mlflowServer();
  const directory = await runFolder();
  const first = await opened(directory, { trackingUri: server.uri }, { config: { lr: 1 } });
  await first.tracking.close({ error: new Error("no rewards") });
  const config = { lr: 2, seed: 3 };
  const second = await opened(directory, { trackingUri: server.uri }, { config });
  await second.tracking.close();
  expect(server.statuses).toEqual(["FAILED", "RUNNING", "FINISHED"]);
  expect(server.paths.filter((path) => path === "mlflow/runs/create")).toHaveLength(1);
  expect(Object.fromEntries(server.params)).toEqual({ lr: "1", seed: "3" });
  expect(second.warnings).toMatchObject([
    { code: "TRACKING_INCOMPLETE", message: expect.stringContaining("parameters: lr") as string },
  ]);
});

test.each([
  { what: "written", isFolder: true, run: "a run that resumes will be another one" },
  { what: "read", isFolder: false, run: "this run will be another one than before" },
])(
  "a note of the run that cannot be $what is one warning with its path: all values arrive in one run",
  async ({ isFolder, run }) => {
    const server = await mlflowServer();
    const directory = await runFolder();
    const note = join(directory, "mlflow.json");
    if (!isFolder) await writeFile(note, '{"trackingUri": "http://');
    // What has a file in it is replaced by none.
    else await mkdir(join(note, "in the way"), { recursive: true });
    let failures = 2;
    server.answerWith = (path) =>
      path === "mlflow/experiments/create" && failures-- > 0 ? 503 : undefined;
    const { tracking, warnings } = await opened(directory, { trackingUri: server.uri });
    tracking.log({ loss: 1 }, 1);
    await tracking.close();
    expect(server.metrics.get("loss 1")).toBe(1);
    expect(server.statuses).toEqual(["FINISHED"]);
    const made = server.paths.filter((path) => path === "mlflow/runs/create");
    const ofNote = warnings.filter(({ message }) => message.includes(note));
    expect(made).toHaveLength(1);
    expect(ofNote.some(({ message }) => message.includes(run))).toBe(true);
    expect(ofNote).toHaveLength(isFolder ? 2 : 1);
  },
);

test("a run whose making had no answer is found again, and no second one is made", async () => {
  const server = await mlflowServer();
  server.unheard = 1;
  const { tracking } = await opened(await runFolder(), { trackingUri: server.uri });
  tracking.log({ loss: 1 }, 1);
  await tracking.close();
  expect(server.metrics.get("loss 1")).toBe(1);
  expect(server.statuses).toEqual(["FINISHED"]);
  expect(server.paths.filter((path) => path === "mlflow/runs/create")).toHaveLength(1);
});

test("a server that is away for a while loses nothing, with one warning", async () => {
  const server = await mlflowServer();
  let left = 5;
  server.answerWith = () => (left-- > 0 ? 503 : undefined);
  const { tracking, warnings } = await opened(await runFolder(), { trackingUri: server.uri });
  for (let step = 1; step <= 20; step += 1) tracking.log({ loss: step }, step);
  await eventually(() => expect(server.metrics.get("loss 20")).toBe(20));
  await tracking.close();
  expect(server.metrics.size).toBe(20);
  expect(server.statuses).toEqual(["FINISHED"]);
  expect(warnings).toMatchObject([
    { code: "TRACKING_INCOMPLETE", message: expect.stringContaining("HTTP 503") as string },
  ]);
});

test.each([
  { what: "is away to the end", status: 503, path: "", lost: 6 },
  { what: "refuses metrics", status: 400, path: "mlflow/runs/log-batch", lost: 5 },
])("a server that $what: the lost values are counted", async ({ status, path, lost }) => {
  const server = await mlflowServer();
  server.answerWith = (asked) => (asked.includes(path) ? status : undefined);
  const { tracking, warnings } = await opened(await runFolder(), { trackingUri: server.uri });
  for (let step = 1; step <= 5; step += 1) tracking.log({ loss: step }, step);
  await tracking.close();
  expect(warnings.at(-1)?.message).toContain(`${lost} values were not delivered`);
  expect(warnings.every(({ code }) => code === "TRACKING_INCOMPLETE")).toBe(true);
  expect(warnings.length).toBeLessThanOrEqual(3);
});

test("a report that the server fails on holds no other back, and is sent again", async () => {
  const server = await mlflowServer();
  server.answerWith = (path) => (path.startsWith("mlflow-artifacts/") ? 500 : undefined);
  const { tracking, warnings } = await opened(await runFolder(), { trackingUri: server.uri });
  for (const step of [0, 1]) tracking.generations(step, [{ input: "1+1", output: "2", score: 1 }]);
  for (let step = 1; step <= 5; step += 1) tracking.log({ loss: step }, step);
  await eventually(() => expect(server.metrics.get("loss 5")).toBe(5));
  server.answerWith = (path) => (path.endsWith("val_step1.json") ? 500 : undefined);
  await eventually(() => expect(server.artifacts.size).toBe(1));
  await tracking.close();
  expect(server.statuses).toEqual(["FINISHED"]);
  expect(warnings.map(({ message }) => message)).toEqual([
    expect.stringContaining("it answers with a failure"),
    expect.stringMatching(/values are lost: .*val_step1.json: HTTP 500/),
    expect.stringContaining("1 values were not delivered"),
  ]);
});

test.each([200, 404])(
  "a page of a gateway before the server, HTTP %i, takes nothing: reports are sent again",
  async (status) => {
    const server = await mlflowServer();
    const page = { status, html: "<html><title>Sign in</title></html>" };
    const { tracking, warnings } = await opened(await runFolder(), { trackingUri: server.uri });
    server.answerWith = () => page;
    tracking.log({ loss: 1 }, 1);
    tracking.generations(1, [{ input: "1+1", output: "2", score: 1 }]);
    const warned = [expect.stringMatching(/is not MLflow's: <html><title>Sign in/) as string];
    await eventually(() => expect(warnings.map(({ message }) => message)).toEqual(warned));
    server.answerWith = undefined;
    await eventually(() => expect([server.metrics.size, server.artifacts.size]).toEqual([1, 1]));
    let left = 1;
    server.answerWith = (path) => (path.endsWith("update") && left-- > 0 ? page : undefined);
    await tracking.close();
    expect(server.statuses).toEqual(["FINISHED"]);
    // What was delivered, late, is neither lost nor counted as lost.
    expect(warnings.filter(({ message }) => /lost|delivered/.test(message))).toEqual([]);
    server.answerWith = () => page;
    const wrong = opened(await runFolder(), { trackingUri: server.uri });
    await expect(wrong).rejects.toThrow(/"mlflow": it cannot begin: .*is not MLflow's/);
  },
);

test("a request that a gateway finds too large arrives in parts", async () => {
  const server = await mlflowServer();
  server.answerWith = (_path, body) =>
    body.length > 300 ? { status: 413, html: "<html>Request Entity Too Large</html>" } : undefined;
  const { tracking, warnings } = await opened(await runFolder(), { trackingUri: server.uri });
  tracking.log(Object.fromEntries(Array.from({ length: 20 }, (_, at) => [`m/${at}`, at])), 1);
  await tracking.close();
  expect(warnings).toEqual([]);
  expect(server.metrics.size).toBe(20);
});

test("a value that the server refuses is named, and takes no other with it", async () => {
  const server = await mlflowServer();
  for (const key of ["odd", "data/odd"]) server.refused.add(key);
  const config = { data: { odd: 1, seed: 2, path: "x" } };
  const { tracking, warnings } = await opened(
    await runFolder(),
    { trackingUri: server.uri },
    { config },
  );
  for (const step of [1, 2]) tracking.log({ a: 1, b: 2, odd: 3, c: 4, d: 5 }, step);
  await tracking.close();
  expect(Object.fromEntries(server.params)).toEqual({ "data/seed": "2", "data/path": "x" });
  const keys = ["a 1", "b 1", "c 1", "d 1", "a 2", "b 2", "c 2", "d 2"];
  expect([...server.metrics.keys()].toSorted()).toEqual(keys.toSorted());
  expect(warnings.map(({ message }) => message)).toEqual([
    expect.stringMatching(/the setting "data\/odd" is refused: .*HTTP 400/),
    expect.stringMatching(/the metric "odd" is refused: .*HTTP 400/),
    expect.stringContaining("3 values were not delivered"),
  ]);
});

test.each([
  // verl's own spelling.
  ["val-core/openai/gsm8k/acc/mean@1", "val-core/openai/gsm8k/acc/mean_at_1"],
  ["a//b#c", "a/b_c"],
  // \w of Python has the letters and digits of all scripts, and no marks.
  ["val-core/数学/acc", "val-core/数学/acc"],
  ["naïve/Ω²/नी", "naïve/Ω²/न_"],
  ["lone \ud83d", "lone _"],
  // MLflow refuses what a path resolves.
  ["val-core/./data/math", "val-core/_/data/math"],
  ["../up/..", "__/up/__"],
  ["..hidden", "__hidden"],
  ["/a/", "a"],
  ["/", "_"],
  ["", "_"],
  [`${"𝒳".repeat(249)}/x`, "𝒳".repeat(249)],
  [`${"x".repeat(248)}/..x`, `${"x".repeat(248)}/_`],
])("the name %j is %j on the server", (name, key) => {
  expect(mlflowKey(name)).toBe(key);
});

test("names that would be one on the server are kept apart, also by a process that resumes", async () => {
  const server = await mlflowServer();
  const directory = await runFolder();
  const config = { "a/b": 1, a: { b: 2 } };
  const options = { trackingUri: server.uri };
  for (const step of [1, 2]) {
    const { tracking, warnings } = await opened(directory, options, { config });
    tracking.log({ "acc/x#": 1, "acc/x%": 2 }, step);
    await tracking.close();
    expect(warnings.map(({ message }) => message)).toEqual([
      expect.stringMatching(/the settings "a\/b" and "a\/b" have one name .*"a\/b_[\da-f]{8}"/),
      expect.stringMatching(/the metrics "acc\/x#" and "acc\/x%" have one name .*"acc\/x__/),
    ]);
  }
  expect([...server.params.values()]).toEqual(["1", "2"]);
  expect([...server.metrics.values()]).toEqual([1, 2, 1, 2]);
  expect(server.metrics.get("acc/x_ 2")).toBe(1);
});

test("what finds no place while the server is away is counted", async () => {
  const server = await mlflowServer();
  server.answerWith = () => 503;
  const options = { trackingUri: server.uri, maxKept: 3 };
  const { tracking, warnings } = await opened(await runFolder(), options);
  for (let step = 1; step <= 5; step += 1) tracking.log({ loss: step }, step);
  await eventually(() => expect(warnings.map(String).join()).toContain("more than 3 values wait"));
  server.answerWith = undefined;
  await tracking.close();
  expect(server.metrics.size).toBe(3);
  expect(warnings.at(-1)?.message).toContain("values were not delivered");
});

test("credentials come from MLflow's variables, and refused ones keep the run from starting", async () => {
  const server = await mlflowServer();
  vi.stubEnv("MLFLOW_TRACKING_URI", server.uri);
  vi.stubEnv("MLFLOW_TRACKING_USERNAME", "ada");
  vi.stubEnv("MLFLOW_TRACKING_PASSWORD", "secret");
  try {
    await (await Tracking.open(optionsIn(await runFolder(), { logger: "mlflow" }))).close();
    expect([...server.authorizations]).toEqual([`Basic ${btoa("ada:secret")}`]);
    server.answerWith = () => 401;
    const refused = Tracking.open(optionsIn(await runFolder(), { logger: "mlflow" }));
    await expect(refused).rejects.toThrow(/"mlflow": it cannot begin: .*HTTP 401/);
  } finally {
    vi.unstubAllEnvs();
  }
});

test.each([
  ["", /MLFLOW_TRACKING_URI, the server's address, is not set/],
  ["sqlite:////tmp/mlruns.db", /"sqlite:.*" is not an HTTP address/],
])("the address %j is refused", async (trackingUri, message) => {
  vi.stubEnv("MLFLOW_TRACKING_URI", trackingUri);
  try {
    const opening = Tracking.open(optionsIn(await runFolder(), { logger: "mlflow" }));
    await expect(opening).rejects.toThrow(message);
  } finally {
    vi.unstubAllEnvs();
  }
});

test("an hour of steps that waited for the server is a few requests, each value once", async () => {
  const server = await mlflowServer();
  server.answerWith = () => 503;
  const { tracking, warnings } = await opened(await runFolder(), { trackingUri: server.uri });
  tracking.log({ a: 1, b: 1 }, 1);
  await eventually(() => expect(warnings).toHaveLength(1));
  for (let step = 2; step <= 3600; step += 1) tracking.log({ a: step, b: step }, step);
  server.answerWith = undefined;
  server.paths.length = 0;
  await tracking.close();
  expect([server.metrics.size, server.metrics.get("b 3600")]).toEqual([7200, 3600]);
  expect(server.statuses).toEqual(["FINISHED"]);
  expect(warnings).toHaveLength(1);
  // 1,000 values in a request; fewer at first, as the request before them failed.
  expect(server.paths.length).toBeLessThan(40);
});

test("a server that is slow at the end: what it took in time is there, the rest counted, and nothing is sent later", async () => {
  vi.useFakeTimers({ toFake: ["setTimeout", "clearTimeout", "performance"] });
  try {
    const sent: string[] = [];
    const warnings: string[] = [];
    const slow = async (what: string): Promise<void> => {
      await new Promise((resolve) => setTimeout(resolve, 1000));
      sent.push(what);
    };
    const warn = (problem: string) => void warnings.push(problem);
    const delivery = new Delivery({ warn, pauseMs: 1, maxKept: 100 });
    for (let step = 1; step <= 60; step += 1) {
      delivery.add({ values: 1, send: () => slow(`step ${step}`) });
    }
    let isClosed = false;
    const closing = delivery.close({ values: 1, send: () => slow("end") });
    void closing.then(() => (isClosed = true));
    // A Tracking waits so long for it.
    await vi.advanceTimersByTimeAsync(30_000);
    expect(isClosed).toBe(true);
    expect(sent.at(-1)).toBe("end");
    const lost = 61 - sent.length;
    expect(lost).toBeGreaterThan(0);
    expect(delivery.lost).toBe(lost);
    expect(warnings.at(-1)).toBe(`${lost} values were not delivered`);
    const before = sent.length;
    await vi.advanceTimersByTimeAsync(60_000);
    expect(sent).toHaveLength(before);
  } finally {
    vi.useRealTimers();
  }
});

test("a report that the server fails on is lost alone, also where others go with it", async () => {
  const sent: number[] = [];
  // A request fails where 13 is in it.
  const report = (steps: readonly number[]): Joinable => ({
    steps,
    values: steps.length,
    send: async () => {
      if (steps.includes(13)) throw new FailedReport("13");
      sent.push(...steps);
    },
    joined: (next) => report([...steps, ...(next as Joinable).steps]),
  });
  const warnings: string[] = [];
  const warn = (problem: string) => void warnings.push(problem);
  const delivery = new Delivery({ warn, pauseMs: 1, maxKept: 100 });
  for (let step = 0; step < 50; step += 1) delivery.add(report([step]));
  await delivery.close();
  expect(sent.toSorted((a, b) => a - b)).toEqual(
    Array.from({ length: 50 }, (_, step) => step).filter((step) => step !== 13),
  );
  expect(warnings.at(-1)).toBe("1 values were not delivered");
});

test("a report that is added in any turn after the answer to the last one is sent, before more come", async () => {
  for (let turns = 0; turns < 12; turns += 1) {
    const sent: string[] = [];
    const answer = Promise.withResolvers<void>();
    const delivery = new Delivery({ warn: () => undefined, pauseMs: 1, maxKept: 100 });
    const last = async (): Promise<void> => answer.promise.then(() => void sent.push("last"));
    delivery.add({ values: 1, send: last });
    answer.resolve();
    for (let turn = 0; turn < turns; turn += 1) await Promise.resolve();
    delivery.add({ values: 1, send: async () => void sent.push("added") });
    await new Promise(setImmediate);
    expect(sent, `${turns} turns`).toEqual(["last", "added"]);
    await delivery.close();
  }
});
