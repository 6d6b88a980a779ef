/** A rehearsal refuses what a run would refuse before its first step, by the key that says it. */

import { mkdir, mkdtemp, readdir, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { afterAll, beforeAll, expect, test } from "vitest";
import { loadTrainerConfig } from "../../src/config/index.ts";
import { rehearseRun } from "../../src/run/index.ts";

/** Of a reward model: a folder with a tokenizer. */
const tinyModel = fileURLToPath(new URL("../../../../test/fixtures/tiny-model", import.meta.url));

let folder: string;
const row = (more: object = {}): string =>
  JSON.stringify({
    prompt: [{ role: "user", content: "1 + 1?" }],
    data_source: "openai/gsm8k",
    reward_model: { ground_truth: "2" },
    ...more,
  });

beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), "rehearse-"));
  await writeFile(join(folder, "train.jsonl"), `${row()}\n`.repeat(8));
  await writeFile(
    join(folder, "none.jsonl"),
    `${row({ images: [] })}\n${row({ images: null })}\n`.repeat(4),
  );
  await writeFile(
    join(folder, "images.jsonl"),
    `${row()}\n${row({ images: ["a.png"] })}\n`.repeat(4),
  );
  const many = String.fromCodePoint(...Array.from({ length: 5000 }, (_, index) => 0x4e00 + index));
  await writeFile(
    join(folder, "many.jsonl"),
    `${row({ reward_model: { ground_truth: many } })}\n`.repeat(8),
  );
  const asked = { ground_truth: { target: ["paris"] } };
  await writeFile(
    join(folder, "targets.jsonl"),
    `${row()}\n`.repeat(7) + `${row({ reward_model: asked })}\n`,
  );
  await writeFile(
    join(folder, "updater.ts"),
    "export const five = 5;\nexport function createUpdater() { throw new Error('called'); }\n",
  );
  await writeFile(join(folder, "broken.jsonl"), `${row({ reward_model: 7 })}\n`);
  await writeFile(
    join(folder, "reward.ts"),
    "export function computeScore() { return 1; }\nexport const five = 5;\nexport function rest(...all) { return all.length; }\n",
  );
  await mkdir(join(folder, "used/timeline.jsonl"), { recursive: true });
  await writeFile(join(folder, "throws.ts"), "throw new Error('at the top');\n");
});
afterAll(() => rm(folder, { recursive: true }));

const rehearse = (...overrides: string[]) =>
  rehearseRun(
    loadTrainerConfig({
      overrides: [
        "algorithm.adv_estimator=grpo",
        `data.train_files=${join(folder, "train.jsonl")}`,
        "data.val_files=null",
        "data.train_batch_size=8",
        "actor_rollout_ref.actor.ppo_mini_batch_size=8",
        ...overrides,
      ],
    }),
    { baseDirectory: folder },
  );

const ofServer = (kwargs: string): string[] => [
  "rayling.policy=openai",
  `rayling.policy_kwargs={model: m, ${kwargs}}`,
];

test("what would begin resolves to its prompts", async () => {
  const { train, validation } = await rehearse(
    "reward.custom_reward_function.path=./reward.ts",
    "data.val_files=${data.train_files}",
  );
  expect([train.length, validation?.length]).toEqual([8, 8]);
  await expect(rehearse(`data.train_files=${folder}/none.jsonl`)).resolves.toBeDefined();
});

test("an updater's module is loaded, and not asked for one", async () => {
  await expect(
    rehearse(...ofServer("base_url: 'a:1', updater: {path: ./updater.ts}")),
  ).resolves.toBeDefined();
});

test("a warm start teaches texts and numbers; without one a ground truth may be anything", async () => {
  await expect(rehearse(`data.train_files=${folder}/targets.jsonl`)).resolves.toBeDefined();
});

test("prompts that are too long for a policy are refused before it is there", async () => {
  for (const more of [[], ofServer("base_url: 'a:1'")]) {
    await expect(rehearse("data.max_prompt_length=1", ...more)).rejects.toMatchObject({
      code: "DATASET",
      message: expect.stringMatching(
        /the prompt of row 0 has more than 1 tokens.*data\.max_prompt_length/,
      ) as string,
    });
  }
});

test("prompts that fill no batch are refused, whatever the schedule of the learning rate", async () => {
  for (const more of [[], ["actor_rollout_ref.actor.optim.lr_scheduler_type=cosine"]]) {
    const rehearsal = rehearse(
      "data.train_batch_size=9",
      "actor_rollout_ref.actor.ppo_mini_batch_size=9",
      ...more,
    );
    await expect(rehearsal).rejects.toMatchObject({
      name: "DatasetError",
      message: expect.stringContaining("has 8 rows, which fill no batch of 9") as string,
    });
  }
});

test.each([
  ["rayling.policy_kwargs.alphabet", "is needed", ["data.train_files={folder}/many.jsonl"]],
  ["rayling.policy_kwargs.alphabet", 'lacks "1"', ["rayling.policy_kwargs={alphabet: abc}"]],
  ["rayling.policy_kwargs.heads", "which 2 does not", ["rayling.policy_kwargs={width: 33}"]],
  [
    "rayling.policy_kwargs.context_length",
    "no room for a prompt of 6 tokens and a response of 512",
    ["rayling.policy_kwargs={context_length: 517}"],
  ],
  ["rayling.policy_kwargs.base_url", "must be a text", ofServer("api_key: k")],
  ["rayling.policy_kwargs.timeout_ms", "above 0", ofServer("base_url: 'a:1', timeout_ms: -1")],
  [
    "rayling.policy_kwargs.tokenizer",
    "There is no tokenizer in /nowhere",
    ofServer("base_url: 'a:1', tokenizer: /nowhere"),
  ],
  ["rayling.policy_kwargs.updater.path", "a text", ofServer("base_url: 'a:1', updater: {}")],
  [
    "rayling.policy_kwargs.updater",
    "nothing.ts",
    ofServer("base_url: 'a:1', updater: {path: ./nothing.ts}"),
  ],
  [
    "rayling.policy_kwargs.updater",
    "exports no function five",
    ofServer("base_url: 'a:1', updater: {path: ./updater.ts, name: five}"),
  ],
  [
    "rayling.policy_kwargs.seconds",
    "an object of phases",
    ["rayling.policy=timed", "rayling.policy_kwargs={seconds: 5}"],
  ],
  [
    "rayling.policy_kwargs.seconds.gen",
    "seconds.gen",
    ["rayling.policy=timed", "rayling.policy_kwargs={seconds: {gen: -1}}"],
  ],
  [
    "rayling.warm_start_steps",
    'row 7 is no text and no number, as a warm start needs, which teaches it as the answer: {"target":["paris"]}',
    ["rayling.warm_start_steps=9", "data.train_files={folder}/targets.jsonl"],
  ],
  [
    "rayling.warm_start_steps",
    "row 0 has 8 tokens with its ground truth",
    [
      "rayling.warm_start_steps=9",
      "data.max_response_length=1",
      "rayling.policy_kwargs={context_length: 7}",
    ],
  ],
  ["rayling.policy", "is none of tiny, openai, timed", ["rayling.policy=./nothing.ts"]],
  [
    "rayling.critic",
    "is needed",
    [
      "algorithm.adv_estimator=gae",
      "rayling.policy=openai",
      "rayling.policy_kwargs={baseUrl:'http://localhost:1',model:m}",
    ],
  ],
  [
    "reward.custom_reward_function.path",
    "was not found",
    ["reward.custom_reward_function.path=./nothing.ts"],
  ],
  [
    "reward.custom_reward_function.path",
    "is Python",
    ["reward.custom_reward_function.path=./reward.py"],
  ],
  [
    "reward.custom_reward_function.name",
    "rest",
    ["reward.custom_reward_function.path=./reward.ts", "reward.custom_reward_function.name=rest"],
  ],
  [
    "reward.custom_reward_function.path",
    "at the top",
    ["reward.custom_reward_function.path=./throws.ts"],
  ],
  [
    "reward.custom_reward_function.name",
    "no export nope",
    ["reward.custom_reward_function.path=./reward.ts", "reward.custom_reward_function.name=nope"],
  ],
  [
    "reward.custom_reward_function.name",
    "five",
    ["reward.custom_reward_function.path=./reward.ts", "reward.custom_reward_function.name=five"],
  ],
  [
    "reward.reward_model.model_path",
    "There is no tokenizer in",
    ["reward.reward_model.enable=true", "reward.reward_model.model_path=/nowhere/model"],
  ],
  [
    "reward.reward_models.judge.model_path",
    "There is no tokenizer in /nowhere/judge",
    ["+reward.reward_models.judge={model_path: /nowhere/judge, servers: ['a:1']}"],
  ],
  [
    "reward.policy_tokenizer",
    "There is no tokenizer in",
    [
      "reward.reward_model.enable=true",
      `reward.reward_model.model_path=${tinyModel}`,
      "reward.policy_tokenizer=/nowhere/policy",
    ],
  ],
  ["reward.reward_manager.name", "nosuch", ["reward.reward_manager.name=nosuch"]],
  ["data.image_key", "have something there (row 1)", ["data.train_files={folder}/images.jsonl"]],
  [
    "algorithm.adv_estimator",
    "sumPiSquared",
    [
      "algorithm.adv_estimator=optimal_token_baseline",
      "algorithm.rollout_correction.bypass_mode=true",
    ],
  ],
  ["rayling.metrics_port", "nobody could ask", ["trainer.logger=[prometheus]"]],
  ["trainer.logger", "MLFLOW_TRACKING_URI, the server's address", ["trainer.logger=[mlflow]"]],
  ...[
    ["trainer.default_local_dir", "reward.ts/ck", "reward.ts is no folder", "trainer.save_freq=1"],
    ["trainer.rollout_data_dir", "reward.ts/rollouts", "reward.ts is no folder"],
    ["trainer.validation_data_dir", "reward.ts", "reward.ts is no folder"],
    ["rayling.directory", "reward.ts", "reward.ts is no folder"],
    ["rayling.directory", "used", "timeline.jsonl: it is a folder", "trainer.logger=file"],
    ["reward.record", "used", "it is a folder"],
    ["reward.record", "missing/log.jsonl", "there is no folder {folder}/missing"],
    ["reward.record", "reward.ts/log.jsonl", "reward.ts is no folder"],
    ["reward.cache", "used", "it is a folder"],
    ["reward.cache", "train.jsonl", "it is no database of SQLite"],
  ].map(([key = "", path, problem = "", ...more]): [string, string, string[]] => [
    key,
    problem,
    [`${key}={folder}/${path}`, ...more],
  ]),
])("%s: %s", async (key, problem, overrides) => {
  const given = overrides.map((one) => one.replace("{folder}", folder));
  await expect(rehearse(...given)).rejects.toMatchObject({
    code: "TRAINER_CONFIG",
    key,
    message: expect.stringContaining(problem.replace("{folder}", folder)) as string,
  });
});

test("folders and files that a run would make are made by no rehearsal", async () => {
  const own = [
    `trainer.default_local_dir=${folder}/a/checkpoints`,
    "trainer.save_freq=1",
    `trainer.rollout_data_dir=${folder}/a/rollouts`,
    `rayling.directory=${folder}/a/run`,
    `reward.record=${folder}/log.jsonl`,
    `reward.cache=${folder}/cache.sqlite`,
  ];
  const before = await readdir(folder);
  await expect(rehearse(...own)).resolves.toBeDefined();
  expect(await readdir(folder)).toEqual(before);
});

/** The recipe's and the reward loop's own command lines, with what a user puts in their place. */
const own = ["custom_reward_function.path=./reward.ts", "custom_reward_function.name=computeScore"];
const recipe = [
  "reward_model.reward_manager=batch",
  "reward_model.launch_reward_fn_async=True",
  ...own,
];
const ofLoop = ["reward_model.use_reward_loop=true", "reward_model.reward_manager=naive"];

test.each([
  ["actor_rollout_ref.actor.strategy=fsdp2", ...recipe, "+update_pipeline=True"],
  ["actor_rollout_ref.actor.strategy=fsdp2", ...recipe, "+mini_batch_pipeline=True"],
  [
    "actor_rollout_ref.actor.strategy=megatron",
    ...recipe,
    "+mini_batch_pipeline=True",
    "+max_concurrency=256",
  ],
  [...ofLoop, "reward_model.enable=false", "reward_model.num_workers=4"],
  [
    ...ofLoop,
    "reward_model.num_workers=8",
    "reward_model.enable=true",
    `reward_model.model.path=${tinyModel}`,
  ],
])("verl's recipe begins: %s", async (...overrides) => {
  const { train } = await rehearse(...overrides);
  expect(train.length).toBe(8);
});

test("data that is wrong is refused with its place", async () => {
  await expect(rehearse(`data.train_files=${folder}/broken.jsonl`)).rejects.toMatchObject({
    code: "DATASET",
    message: expect.stringContaining("reward_model must be") as string,
  });
});
