/**
 * The command lines of verl's own examples, recipes and end-to-end tests, of two versions (171, in ../shared/data): what real Hydra makes of each (golden/make.py asked it), and whether a run here
 * would begin (verl-verdicts.json: UPDATE_VERDICTS=1 writes it anew).
 */

import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { readFileSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { valueAt } from "@rayling/config-tree";
import type { ConfigTree, ConfigValue } from "@rayling/config-tree";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { parse } from "yaml";
import { dataFile } from "../../../../test/fixtures/data-file.ts";
import {
  loadTrainerConfig,
  printConfig,
  presetNames,
  TrainerConfigError,
} from "../../src/config/index.ts";
import { rehearseRun } from "../../src/run/rehearse-run.ts";

interface CommandLine {
  readonly script: string;
  readonly configName: string;
  readonly overrides: readonly string[];
}

interface Golden {
  readonly versions: Readonly<
    Record<
      string,
      {
        readonly defaults: Readonly<Record<string, ConfigValue>>;
        readonly cases: Readonly<Record<string, Readonly<Record<string, ConfigValue>>>>;
      }
    >
  >;
}

const golden = JSON.parse(
  readFileSync(new URL("../golden/verl-compositions.json", import.meta.url), "utf8"),
) as Golden;
const verdictFile = new URL("verl-verdicts.json", import.meta.url);
const verdicts = JSON.parse(readFileSync(verdictFile, "utf8")) as Record<string, string>;

const versions = ["2026-01", "2026-08"];
const files = versions.map((version) => dataFile(`verl-overrides/${version}.jsonl`));
const isMissing = files.some((file) => file.isMissing);

function commandLines(version: string): CommandLine[] {
  const { path } = dataFile(`verl-overrides/${version}.jsonl`);
  return readFileSync(path, "utf8")
    .trim()
    .split("\n")
    .map((line) => JSON.parse(line) as CommandLine);
}

/** Files of verl's examples stand on ppo_trainer, and choose several turns. */
const load = ({ configName, overrides }: CommandLine, ...more: string[]) => {
  const bare = configName.replace(/\.yaml$/, "");
  const isKnown = [...presetNames(), "ppo_megatron_trainer"].includes(bare);
  const turns = bare.includes("multiturn")
    ? ["actor_rollout_ref.rollout.multi_turn.enable=True"]
    : [];
  return loadTrainerConfig({
    name: isKnown ? bare : "ppo_trainer",
    overrides: [...(isKnown ? [] : turns), ...overrides, ...more],
  });
};

/** The message without what differs from machine to machine. */
const reasonOf = (error: unknown): string => {
  expect(error).toBeInstanceOf(TrainerConfigError);
  const [first = ""] = (error as Error).message.replaceAll(process.cwd(), ".").split("\n", 1);
  return first.slice(0, 160);
};

describe.skipIf(isMissing)("verl's command lines", () => {
  test("load and print, at least 150 of 171", () => {
    const answers = versions.flatMap((version) =>
      commandLines(version).map((line) => {
        try {
          return printConfig(load(line)) === "" ? "nothing" : "printed";
        } catch (error) {
          return reasonOf(error);
        }
      }),
    );
    expect(answers).toHaveLength(171);
    expect(answers.filter((answer) => answer !== "printed")).toMatchInlineSnapshot(`
      [
        "actor_rollout_ref.model.path: its value <path_to_dsv3_config> has < at place 1; a text with such characters stands in quotes: '<path_to_dsv3_config>'",
        "data.val_files.0: is "": must not be empty",
        " : is no override; write key.key=value, +key=value or ~key",
        "actor_rollout_ref.actor.use_kl_loss: is "": must be true or false",
        "data.train_batch_size: is 0: must be a whole number of at least 1",
      ]
    `);
  });

  /** Where the same text means something else on purpose. */
  const otherwise: Readonly<
    Record<string, (theirs: ConfigValue, ours: ConfigValue | undefined) => boolean>
  > = {
    // Those that are not here, are told.
    "trainer.logger": () => true,
    // One file is a list of one.
    "data.train_files": (theirs, ours) => JSON.stringify([theirs].flat()) === JSON.stringify(ours),
    "data.val_files": (theirs, ours) => JSON.stringify([theirs].flat()) === JSON.stringify(ours),
    // Read by nobody without resume_mode=resume_path.
    "trainer.resume_from_path": (_theirs, ours) => ours === null,
    "trainer.test_freq": (theirs, ours) => theirs === false && ours === -1,
    "actor_rollout_ref.actor.optim.lr_warmup_steps": (theirs, ours) =>
      theirs === null && ours === -1,
    "critic.optim.lr_warmup_steps": (theirs, ours) => theirs === null && ours === -1,
  };

  test.each(versions)("of %s come to what Hydra makes of them, key by key", (version) => {
    const { defaults, cases } = golden.versions[version] ?? { defaults: {}, cases: {} };
    const base = parse(printConfig(loadTrainerConfig())) as ConfigTree;
    let compared = 0;
    const wrong = commandLines(version).flatMap((line) => {
      const theirs = cases[line.script];
      if (theirs === undefined || "refused" in theirs) return [];
      let ours: ConfigTree;
      try {
        ours = parse(printConfig(load(line))) as ConfigTree;
      } catch {
        return [];
      }
      return Object.entries(theirs).flatMap(([key, value]) => {
        const own = valueAt(ours, key.split("."));
        compared += 1;
        const isSame =
          JSON.stringify(own) === JSON.stringify(value) || otherwise[key]?.(value, own) === true;
        return isSame ? [] : [{ script: line.script, key, theirs: value, ours: own }];
      });
    });
    // What nobody has set is verl's default, or ours where presets/ppo_trainer.yaml says so.
    const others = Object.entries(defaults)
      .filter(
        ([key, value]) => JSON.stringify(valueAt(base, key.split("."))) !== JSON.stringify(value),
      )
      .map(
        ([key, value]) =>
          `${key}: ${JSON.stringify(value)} there, ${JSON.stringify(valueAt(base, key.split(".")))} here`,
      );
    expect(others).toMatchSnapshot();
    expect(wrong).toEqual([]);
    expect(compared).toBeGreaterThan(500);
  });

  describe("rehearsed with data of their columns", () => {
    let folder: string;
    beforeAll(async () => {
      folder = await mkdtemp(join(tmpdir(), "verl-lines-"));
    });
    afterAll(() => rm(folder, { recursive: true }));

    const dataOf = async ({ overrides }: CommandLine): Promise<string> => {
      const named = (key: string): string | undefined =>
        overrides.findLast((one) => one.startsWith(`data.${key}=`))?.slice(`data.${key}=`.length);
      const [prompt = "prompt", source = "data_source", image] = [
        "prompt_key",
        "reward_fn_key",
        "image_key",
      ].map(named);
      const row = {
        [prompt]: [{ role: "user", content: "1 + 1?" }],
        [source]: "openai/gsm8k",
        reward_model: { ground_truth: "2" },
        ...(image === undefined ? {} : { [image]: [{ path: "a.png" }] }),
      };
      // As many rows as fill a batch.
      const rows = Math.max(16, Number(named("train_batch_size") ?? 1024));
      const path = join(folder, `${prompt}-${source}-${image}-${rows}.jsonl`);
      await writeFile(path, `${JSON.stringify(row)}\n`.repeat(rows));
      return path;
    };

    test("have the verdicts of the table", async () => {
      const found: Record<string, string> = {};
      for (const version of versions) {
        for (const line of commandLines(version)) {
          const path = await dataOf(line);
          const data = [`data.train_files=${path}`, `data.val_files=${path}`];
          const name = `${version} ${line.script}`;
          try {
            await rehearseRun(load(line, ...data, "rayling.policy=timed"));
            found[name] = "begins";
          } catch (error) {
            found[name] = reasonOf(error);
          }
        }
      }
      if (process.env["UPDATE_VERDICTS"] === "1") {
        writeFileSync(verdictFile, `${JSON.stringify(found, undefined, 2)}\n`);
      }
      expect(found).toEqual(process.env["UPDATE_VERDICTS"] === "1" ? found : verdicts);
    });
  });
});
