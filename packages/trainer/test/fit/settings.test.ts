/**
 * What PPOTrainer.create makes of its options: the table's defaults, what follows from several
 * options, and what is refused.
 */

import { execFile } from "node:child_process";
import { isDeepStrictEqual, promisify } from "node:util";
import { fileURLToPath } from "node:url";
import { valueAt } from "@rayling/config-tree";
import type { ConfigTree } from "@rayling/config-tree";
import { defaultOf, entriesOf } from "@rayling/config-tree/options";
import * as ray from "@rayling/core";
import { RewardLoopManager } from "@rayling/reward-loop";
import { PPOTrainer, PromptDataset, PromptLoader, TimedPolicyActor } from "@rayling/trainer";
import type { PolicyHandle, PPOTrainerOptions, TrainingSettings } from "@rayling/trainer";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import type { ZodType } from "zod";
import { camelKey } from "../../src/config/camel-keys.ts";
import { keys, trainingOptions } from "../../src/config/options/training-options.ts";

const run = promisify(execFile);
let loop: RewardLoopManager;
let dataset: PromptDataset;
let policy: PolicyHandle;

beforeAll(async () => {
  await ray.init({ isolation: "shared", prewarm: 0 });
  const reward = fileURLToPath(new URL("../fixtures/bandit-reward.ts", import.meta.url));
  loop = await RewardLoopManager.create({ reward, workers: 1, executors: 1 });
  dataset = await PromptDataset.fromRows(
    Array.from({ length: 16 }, (_, row) => ({
      prompt: [{ role: "user", content: String(row) }],
      data_source: "bandit",
      reward_model: { ground_truth: "" },
    })),
  );
  policy = TimedPolicyActor.remote({ seconds: {} });
});

afterAll(async () => {
  await loop.close();
  await ray.shutdown();
});

describe("settings", () => {
  const settingsOf = async (more: Partial<PPOTrainerOptions>): Promise<TrainingSettings> => {
    await using trainer = await PPOTrainer.create({
      policy,
      prompts: new PromptLoader(dataset, { batchSize: 8 }),
      reward: loop,
      ...more,
      rollout: { maxResponseLength: 1, ...more.rollout },
    });
    return trainer.settings;
  };

  test("have one range of the clip for both sides, where they have none of their own", async () => {
    const { actor } = await settingsOf({ actor: { clipRatio: 0.1, clipRatioHigh: 0.3 } });
    expect(actor).toMatchObject({ clipRatioLow: 0.1, clipRatioHigh: 0.3 });
    const standard = await settingsOf({});
    expect(standard.actor).toMatchObject({ clipRatioLow: 0.2, clipRatioHigh: 0.2 });
  });

  test("of the critic are the actor's", async () => {
    const { criticOptions } = await settingsOf({
      actor: {
        lossAggMode: "seq-mean-token-sum-norm",
        lossScaleFactor: 100,
        ppoEpochs: 2,
        ppoMiniBatchSize: 4,
      },
    });
    expect(criticOptions).toMatchObject({
      lossAggMode: "seq-mean-token-sum-norm",
      lossScaleFactor: 100,
      ppoEpochs: 2,
      ppoMiniBatchSize: 4,
    });
    const own = await settingsOf({
      actor: { lossScaleFactor: 100 },
      criticOptions: { lossScaleFactor: 7 },
    });
    expect(own.criticOptions.lossScaleFactor).toBe(7);
  });

  test.each([
    [{}, { doSample: false, temperature: 0.7 }],
    [{ doSample: true }, { doSample: true, temperature: 1 }],
    [{ temperature: 0.4 }, { doSample: true, temperature: 0.4 }],
    [
      { temperature: 0.4, doSample: false },
      { doSample: false, temperature: 0.7 },
    ],
    [
      { temperature: 0, doSample: true },
      { doSample: false, temperature: 0.7 },
    ],
  ])("of a validation draw where there is a temperature: %o", async (validation, wanted) => {
    const { rollout } = await settingsOf({
      rollout: { maxResponseLength: 1, temperature: 0.7, validation },
    });
    expect(rollout.validation).toMatchObject(wanted);
  });

  test("that nobody gives are the table's defaults, but for what follows from other options or from the parts", async () => {
    const sections = { filterGroups: {}, rolloutCorrection: {} };
    const settings = await settingsOf({
      algorithm: sections,
      checkpoints: { folder: "never made" },
    });
    const tree = settings as unknown as ConfigTree;
    const optionAt = new Map([...keys].map(([option, key]) => [key, option]));
    const entries = new Map(entriesOf(trainingOptions));
    const others = [...keys.keys()].filter((option) => {
      const standard = defaultOf(entries.get(option) as ZodType);
      // What another key says.
      const [, key = ""] = /^"\$\{(.*)\}"$/.exec(JSON.stringify(standard)) ?? [];
      const other = optionAt.get(camelKey(key));
      const wanted = other === undefined ? standard : valueAt(tree, other.split("."));
      return !isDeepStrictEqual(valueAt(tree, option.split(".")) ?? null, wanted);
    });
    expect(others).toEqual([
      // It must be given.
      "rollout.maxResponseLength",
      // null is whether there is a temperature, and of the likeliest token there is none.
      "rollout.validation.doSample",
      "rollout.validation.temperature",
      // There is no critic.
      "algorithm.advEstimator",
      // The section is given. null is the reward.
      "algorithm.filterGroups.enable",
      "algorithm.filterGroups.metric",
      // All of the batch.
      "actor.ppoMiniBatchSize",
      // null is clipRatio.
      "actor.clipRatioLow",
      "actor.clipRatioHigh",
      // null is the longest response.
      "criticOptions.lossScaleFactor",
      // null is what the schedule says, and what there is to validate on.
      "run.overlapValidation",
      "run.valBeforeTrain",
      // null is 1 where the limit allows it.
      "staleness.numWarmupBatches",
      // It must be given.
      "checkpoints.folder",
    ]);
  });

  test.each<[string, string | RegExp, object]>([
    [
      "actor.ppoMiniBatchSize",
      "is 0.5: must be a whole number of at least 1",
      { actor: { ppoMiniBatchSize: 0.5 } },
    ],
    [
      "actor.ppoMiniBatchSize",
      "is 3, which does not divide prompts.batchSize, 8",
      { actor: { ppoMiniBatchSize: 3 } },
    ],
    [
      "criticOptions.ppoMiniBatchSize",
      "is 16, more than prompts.batchSize, 8",
      { criticOptions: { ppoMiniBatchSize: 16 } },
    ],
    [
      "actor.lossAggMode",
      'is "token_mean": must be one of token-mean, token-sum, seq-mean-token-sum, seq-mean-token-sum-norm, seq-mean-token-mean; did you mean token-mean?',
      { actor: { lossAggMode: "token_mean" } },
    ],
    [
      "actor.ppoEpoch",
      "there is no such key; did you mean actor.ppoEpochs?",
      { actor: { ppoEpoch: 1 } },
    ],
    ["algorthm", "there is no such key; did you mean algorithm?", { algorthm: {} }],
    ["actor", "is 5: must be keys", { actor: 5 }],
    ["run.seed", "is NaN: must be a whole number of at least 0", { run: { seed: Number.NaN } }],
    ["rollout.maxResponseLength", "is needed", { rollout: { maxResponseLength: undefined } }],
    ["checkpoints.folder", "is needed", { checkpoints: {} }],
    [
      "checkpoints.resumePath",
      "is here: must be the path of a folder global_step_N",
      { checkpoints: { folder: "x", resumePath: "here" } },
    ],
    [
      "schedule",
      'is "streeming": must be one of sync, one-step-off-policy, mini-batch-pipeline, one-step-pipeline, streaming; did you mean streaming?',
      { schedule: "streeming" },
    ],
    [
      "actor.lossMode",
      /^actor\.lossMode: is "vanila": there is none of that name; there are .*; did you mean vanilla\?$/,
      { actor: { lossMode: "vanila" } },
    ],
    [
      "run.criticWarmup",
      "is 2, and there is no critic (critic) that the steps before step 2 could train: they would train nothing; did you mean run.criticWarmup=0?",
      { run: { criticWarmup: 2 } },
    ],
    [
      "critic",
      "algorithm.advEstimator gae needs a critic, and there is none",
      { algorithm: { advEstimator: "gae" } },
    ],
  ])(
    "are refused by their name, with what may stand there: %s %s",
    async (input, problem, more) => {
      const message =
        typeof problem === "string"
          ? `${input}: ${problem}`
          : (expect.stringMatching(problem) as string);
      await expect(settingsOf(more)).rejects.toMatchObject({
        name: "TrainerInputError",
        code: "TRAINER_INPUT",
        input,
        message,
      });
    },
  );

  test.each<[string, Partial<PPOTrainerOptions>]>([
    ["checkpoints.keep", { checkpoints: { folder: "never made", keep: 0 } }],
    ["run.saveFreq", { run: { saveFreq: Number.NaN } }],
    ["run.testFreq", { run: { testFreq: 0.5 } }],
  ])("that are none are refused before anything is done: %s", async (input, more) => {
    await expect(settingsOf(more)).rejects.toMatchObject({ name: "TrainerInputError", input });
  });
});

test("the package loads nothing of the table, nor what reads it, before a trainer is made", async () => {
  const program = `
    import { registerHooks } from "node:module";
    const loaded = [];
    registerHooks({ load: (url, context, next) => (loaded.push(url), next(url, context)) });
    const { PPOTrainer } = await import("@rayling/trainer");
    const before = loaded.length;
    await PPOTrainer.create({ prompts: { positionOf: () => ({ batchSize: 8 }) } }).catch((error) => {
      const isOfTable = (url) => /\\/(zod|yaml)\\/|\\/config\\/options\\//.test(url);
      const [first, then] = [loaded.slice(0, before), loaded.slice(before)];
      console.log(error.input, first.some(isOfTable), then.some(isOfTable));
    });
  `;
  const { stdout } = await run(process.execPath, ["--input-type=module", "--eval", program], {
    cwd: import.meta.dirname,
  });
  expect(stdout.trim()).toBe("rollout.maxResponseLength false true");
});
