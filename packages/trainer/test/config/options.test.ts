/** The table of options, and what is made of it: the preset, the page and the schema are current (vitest -u writes them anew), and every entry says what it must. */

import { optionsFile, optionsOf, optionsPage, optionsSchema } from "@rayling/config-tree/options";
import { rewardOptions } from "@rayling/reward-loop/config";
import { globSync, readFileSync } from "node:fs";
import { fileURLToPath } from "node:url";
import { expect, test } from "vitest";
import { snakeKey } from "../../src/config/camel-keys.ts";
import { trainerOptions } from "../../src/config/options/index.ts";
import { readHelp } from "./help.ts";

await readHelp();
const own = optionsOf(trainerOptions, snakeKey);
const entries = [...own, ...optionsOf(rewardOptions, undefined, "reward.")];

test("the preset ppo_trainer is the table's defaults", async () => {
  const title =
    "verl's configuration of PPO (ppo_trainer of its main branch, 2026-08): its keys, with its defaults. Every other configuration stands on this one. Where a default is another one than verl's, a comment says so. " +
    "Those of reward, and what may stand at each key, are in docs/options.md.\nMade of packages/trainer/src/config/options.";
  await expect(optionsFile(trainerOptions, title, snakeKey)).toMatchFileSnapshot(
    "../../presets/ppo_trainer.yaml",
  );
});

test("the page of all options is current", async () => {
  const page = `# Options

All keys of a configuration (\`rayling train --config-name FILE key=value\`), with verl's names: the trainer's, and under \`reward\` those of the reward loop. null is not set; \`\${key}\` is what that key says. Made of the tables in
packages/trainer/src/config/options, packages/reward-loop/src/options and packages/reward-loop/src/config.

${optionsPage(entries)}
`;
  await expect(page).toMatchFileSnapshot("../../../../docs/options.md");
});

test("the schema for editors is current", async () => {
  const { $schema, ...trainer } = optionsSchema(trainerOptions, snakeKey);
  const { $schema: _same, ...reward } = optionsSchema(rewardOptions);
  const schema = {
    $schema,
    title: "A configuration of rayling train",
    ...trainer,
    properties: { ...(trainer["properties"] as object), reward },
    // verl's keys of engines may stand anywhere.
    additionalProperties: true,
  };
  const text = JSON.stringify(
    schema,
    (key, value: unknown) => (key === "additionalProperties" && value === false ? true : value),
    1,
  );
  await expect(`${text}\n`).toMatchFileSnapshot("../../presets/schema.json");
});

test("every option has help, a type and a default, and stands once", () => {
  const keys = entries.map(({ key }) => key);
  expect(new Set(keys).size).toBe(keys.length);
  expect(keys.length).toBeGreaterThan(200);
  for (const { key, type, default: value, help } of entries) {
    expect(help, key).not.toBe("");
    expect(type, key).not.toBe("");
    expect(value, key).toBeDefined();
  }
});

/** The code beside the tables. */
const packages = fileURLToPath(new URL("../../../", import.meta.url));
const code = globSync("{trainer,reward-loop}/src/**/*.ts", { cwd: packages })
  .filter((path) => !/src\/(config\/)?options\/|config\/reward-keys\.ts/.test(path))
  .map((path) => readFileSync(`${packages}${path}`, "utf8"))
  .join("\n");
/** Those of the reward loop, whose options are looked for by a test of their own. */
const tables = globSync("reward-loop/src/options/*.ts", { cwd: packages })
  .map((path) => readFileSync(`${packages}${path}`, "utf8"))
  .join("\n");

test("somebody reads every option", () => {
  const camel = (key: string): string =>
    key.replaceAll(/_([a-z0-9])/g, (_match, letter: string) => letter.toUpperCase());
  const referred = entries.map(({ default: value }) => JSON.stringify(value)).join();
  const unread = entries.filter(({ key }) => {
    const name = key.split(".").at(-1) ?? "";
    const isRead = (text: string, one: string): boolean => new RegExp(`\\b${one}\\b`).test(text);
    const isOfLoop = isRead(tables, camel(name)) || isRead(tables, name);
    const isOwn = isRead(code, camel(name)) || isRead(code, name);
    return !isOwn && !isOfLoop && !referred.includes(`\${${key}}`);
  });
  // verl's settings of the optimiser go to the policy as they are.
  expect(unread.map(({ key }) => key)).toMatchInlineSnapshot(`[]`);
});
