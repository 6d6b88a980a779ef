/**
 * An option stands in its table and where it is used: what passes options on between a file, a
 * program and a training knows none of them by name, and no other file has a default of one.
 */

import { defaultOf, entriesOf } from "@rayling/config-tree/options";
import { globSync, readFileSync } from "node:fs";
import { fileURLToPath } from "node:url";
import { expect, test } from "vitest";
import { trainerOptions } from "../../src/config/options/index.ts";
import { keys, ownDefaults, trainingOptions } from "../../src/config/options/training-options.ts";

const ofPrograms = entriesOf(trainingOptions).map(([option]) => option);
const names = new Set(
  [...entriesOf(trainerOptions).map(([key]) => key), ...ofPrograms].map(
    (key) => key.split(".").at(-1) as string,
  ),
);

/** Rooms between a configuration, a program and a training. */
const passing = [
  "config",
  "run",
  "settings",
  "samples",
  "record",
  "rollouts",
  "validation",
  "groups",
  "step",
];
const isPassing = (path: string): boolean =>
  passing.some((room) => path.startsWith(`${room}/`)) || path === "ppo-trainer.ts";

const src = fileURLToPath(new URL("../../src/", import.meta.url));

/** Without comments, which may name whatever they explain. */
function codeOf(path: string): string {
  const text = readFileSync(src + path, "utf8");
  return text.replaceAll(/\/\*[\s\S]*?\*\//g, "").replaceAll(/^\s*\/\/.*$/gm, "");
}

/** Longer than one word: others mean many things. */
const spoken = [...names].filter((name) => /[a-z][A-Z]/.test(name));

function namedIn(path: string): string[] {
  const code = codeOf(path);
  return spoken.filter((name) => new RegExp(`\\b${name}\\b`).test(code)).toSorted();
}

test.each<[string, readonly string[]]>([
  ["config/camel-keys.ts", []],
  ["config/read-training.ts", []],
  ["config/read-config.ts", []],
  // What else is printed of them as it is: settings of somebody else; and the reward loop's own
  // name of a run.
  ["config/print-config.ts", ["experimentName", "policyKwargs", "taskKwargs"]],
  // What must be given has no default to come from the table.
  ["settings/program-options.ts", ["maxResponseLength"]],
  // What follows from several of them: null is another option, the batch, or the schedule; the
  // bypass has a loss of its own; folders are those of the directory in which the run begins.
  [
    "settings/read-settings.ts",
    [
      "bypassMode",
      "clipRatio",
      "clipRatioHigh",
      "clipRatioLow",
      "doSample",
      "lossMode",
      "lossScaleFactor",
      "maxResponseLength",
      "numWarmupBatches",
      "overlapValidation",
      "resumePath",
      "rolloutDataDir",
      "saveFreq",
      "trainBatchSize",
      "useKlInReward",
      "useKlLoss",
      "valBeforeTrain",
      "validationDataDir",
    ],
  ],
  // Their use: one checkpoint holds actor and critic, the bound of rewards is shared by the
  // workers, the schedule of the learning rate ends with the run.
  [
    "run/trainer-options.ts",
    ["maxActorCkptToKeep", "maxConcurrency", "maxCriticCkptToKeep", "totalTrainingSteps"],
  ],
])("%s passes options on, and names only what it uses", (path, used) => {
  expect(namedIn(path)).toEqual(used);
});

test("no file beside the tables has a default of an option", () => {
  const literal = String.raw`(?:-?\d[\d_.e]*|"[^"]*"|true|false)`;
  const paths = globSync(`{${passing.join()}}/**/*.ts`, { cwd: src }).filter(
    (path) => !path.startsWith("config/options/"),
  );
  expect(paths.length).toBeGreaterThan(40);
  const found = [...paths, "ppo-trainer.ts"].flatMap((path) => {
    const code = codeOf(path);
    return [...names].flatMap((name) => {
      // In a destructuring or a parameter, `name = 1` and `name: other = 1`; and `some.name ?? 1`.
      const given = new RegExp(`[{,]\\s*${name}(?:: \\w+)? = ${literal}`).exec(code);
      const missing = new RegExp(`\\b${name} \\?\\? ${literal}`).exec(code);
      return given === null && missing === null ? [] : [`${path}: ${name}`];
    });
  });
  expect(found.toSorted()).toEqual([
    // Of a request to a policy, by its contract.
    "rollouts/collect-rollouts.ts: n",
    // null is the reward.
    "settings/read-settings.ts: metric",
  ]);
});

test("an option of a program is a key of a configuration, but for what verl has in code", () => {
  expect(ofPrograms.filter((option) => !keys.has(option))).toEqual([
    "algorithm.epsilon",
    "algorithm.fNorm",
    "algorithm.handleZeroTail",
    "actor.permutation",
    "rewardArrangement.validationLoop",
  ]);
});

test("a program's own defaults are of options, and other ones than the table's", () => {
  const entries = new Map(entriesOf(trainingOptions));
  const parts = { hasCritic: false, trainBatchSize: 8, resumePath: "global_step_1" };
  const context = { ...parts, drawsValidation: true };
  for (const [option, value] of Object.entries(ownDefaults(context))) {
    const entry = entries.get(option);
    expect(entry, option).toBeDefined();
    expect(value, option).not.toEqual(entry && defaultOf(entry));
  }
});

test("an option is declared nowhere else, and somebody reads it", () => {
  const all = globSync("**/*.ts", { cwd: src }).filter(
    (path) => !path.startsWith("config/options/"),
  );
  const code = all.map((path) => [path, codeOf(path)] as const);
  // Algorithms, policies and data are by themselves, and say what they are asked with.
  const passed = code.filter(([path]) => isPassing(path));
  const again = passed.flatMap(([path, text]) =>
    [...names].flatMap((name) =>
      new RegExp(`readonly ${name}\\?:`).test(text) ? [`${path}: ${name}`] : [],
    ),
  );
  expect(again.toSorted()).toEqual([
    // The folder of configurations.
    "config/read-config.ts: folder",
    // A schedule may be a function of the user's.
    "ppo-trainer.ts: schedule",
    // The actor.
    "run/policy-kind.ts: critic",
    // The actor.
    "settings/program-options.ts: critic",
    // A schedule as the user gives it.
    "settings/read-settings.ts: schedule",
  ]);
  const users = code.filter(([path]) => !path.startsWith("config/verl/"));
  const unread = [...names].filter(
    (name) => !users.some(([, text]) => new RegExp(`\\b${name}\\b`).test(text)),
  );
  // optim.clip_grad has a reference to it for a default.
  expect(unread).toEqual(["gradClip"]);
});
