/** Fragments in the inbox of trackio: what they have, and that they are whole whatever it does with the folder. */

import { readdir, readFile, rm } from "node:fs/promises";
import { join } from "node:path";
import { afterEach, expect, test, vi } from "vitest";
import { Tracking, TrackioLogger } from "@rayling/trainer";
import { optionsIn, runFolder } from "./run-folder.ts";

const config = { trainer: { project_name: "maths" }, algorithm: { gamma: 1 } };

interface Fragment {
  readonly run_id: string;
  readonly log_id: string;
  readonly step: number;
  readonly metrics: Readonly<Record<string, unknown>>;
  readonly config: unknown;
}

interface Trace {
  readonly metadata: { readonly sample_index: number; readonly score: number | null };
}

/** All that lies in the inbox, in the order in which trackio takes it. */
async function fragmentsIn(folder: string): Promise<Fragment[]> {
  const names = await readdir(join(folder, "inbox"), { recursive: true });
  const paths = names.filter((name) => name.endsWith(".jsonl")).toSorted();
  const texts = await Promise.all(
    paths.map((name) => readFile(join(folder, "inbox", name), "utf8")),
  );
  return texts.flatMap((text) => {
    expect(text).toMatch(/^.+\n$/);
    return [JSON.parse(text) as Fragment];
  });
}

afterEach(() => vi.unstubAllEnvs());

test("a run is fragments with its metrics, settings, answers and one id", async () => {
  const folder = await runFolder();
  vi.stubEnv("TRACKIO_DIR", folder);
  await using tracking = await Tracking.open(
    optionsIn(await runFolder(), { logger: "trackio", config }),
  );
  tracking.log({ "critic/score/mean": 0.5, odd: Number.NaN, high: Infinity }, 1);
  tracking.generations(1, [
    { input: "1 + 1 =", output: "zwei \u{1f600}", score: 0.5 },
    { input: "2 + 2 =", output: "", score: Number.NaN },
  ]);
  tracking.log({ "val-core/a/mean@1": 1 }, 1);
  await tracking.close();
  const fragments = await fragmentsIn(folder);
  expect(fragments).toMatchObject([
    {
      v: 1,
      kind: "metric",
      project: "maths",
      run: "grpo",
      step: 1,
      metrics: { "critic/score/mean": 0.5, odd: "NaN", high: "Infinity" },
      config,
    },
    { step: 1, config: null, metrics: { "val/generations": [{}, {}] } },
    { step: 1, config: null, metrics: { "val-core/a/mean@1": 1 } },
  ]);
  const traces = fragments[1]?.metrics["val/generations"] as readonly Trace[];
  expect(traces.map(({ metadata }) => metadata.sample_index)).toEqual([0, 1]);
  expect(
    traces.toSorted((a, b) => (b.metadata.score ?? 0) - (a.metadata.score ?? 0)),
  ).toMatchObject([
    {
      _type: "trackio.trace",
      messages: [
        { role: "user", content: "1 + 1 =" },
        { role: "assistant", content: "zwei \u{1f600}" },
      ],
      metadata: { score: 0.5 },
    },
    { messages: [{ content: "2 + 2 =" }, { content: "" }], metadata: { score: null } },
  ]);
  expect(new Set(fragments.map((one) => one.run_id)).size).toBe(1);
  expect(new Set(fragments.map((one) => one.log_id)).size).toBe(3);
});

test("half a character, where a text was cut, is no reason to lose the fragment", async () => {
  const folder = await runFolder();
  vi.stubEnv("TRACKIO_DIR", folder);
  const cut = { trainer: { note: "cut \ud83d" } };
  await using tracking = await Tracking.open(
    optionsIn(await runFolder(), { logger: "trackio", config: cut }),
  );
  tracking.generations(1, [{ input: "\ude00 + 1", output: "zwei \ud83d", score: 1 }]);
  await tracking.close();
  const [fragment] = await fragmentsIn(folder);
  expect(fragment?.config).toEqual({ trainer: { note: "cut \ufffd" } });
  expect(JSON.stringify(fragment?.metrics)).toContain('"\ufffd + 1"');
  expect(JSON.stringify(fragment)).not.toMatch(/\\ud[89a-f]/);
});

test("fragments that were taken, with their folder, do not keep others from being written", async () => {
  const folder = await runFolder();
  const logger = new TrackioLogger({ directory: folder });
  const run = {
    projectName: "maths",
    experimentName: "grpo",
    directory: folder,
    totalSteps: undefined,
  };
  await logger.open(run);
  await logger.log({ score: 1 }, 1);
  await rm(join(folder, "inbox"), { recursive: true });
  await logger.log({ score: 2 }, 2);
  await logger.log({ score: 3 }, 3);
  const fragments = await fragmentsIn(folder);
  expect(fragments.map(({ step, metrics }) => [step, metrics["score"]])).toEqual([
    [2, 2],
    [3, 3],
  ]);
});

test.each([
  [{ HF_HOME: "/hub" }, "/hub/trackio"],
  [{ TRACKIO_DIR: "/own", HF_HOME: "/hub" }, "/own"],
])("an inbox that cannot be made keeps the run from starting: %j", async (env, at) => {
  for (const [name, value] of Object.entries(env)) vi.stubEnv(name, `/dev/null${value}`);
  const opening = Tracking.open(optionsIn(await runFolder(), { logger: "trackio" }));
  await expect(opening).rejects.toMatchObject({
    code: "TRACKING_OPEN",
    cause: { path: expect.stringContaining(`/dev/null${at}/inbox`) as string },
  });
});
