/** The loader against real modules in a folder of their own, packages included. */

import { mkdirSync, mkdtempSync, realpathSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { pathToFileURL } from "node:url";
import { afterAll, beforeAll, describe, expect, test, vi } from "vitest";
import {
  createRegistry,
  loadComputeScore,
  loadRewardManagerClass,
  RewardModuleImportError,
} from "@rayling/reward-manager-registry";
import type { RewardSpec, ScoreInput } from "@rayling/reward-manager-registry";

const baseDirectory = realpathSync(mkdtempSync(join(tmpdir(), "rayling loader ")));
const FILES: Readonly<Record<string, string>> = {
  "reward.ts": `
    export function computeScore({ solutionStr }: { solutionStr: string }): number { return solutionStr.length; }
    export const compute_score = () => -1;
    export const other = async ({ bonus, groundTruth }: { bonus: number; groundTruth: unknown }) => ({ score: bonus, groundTruth });
    export const limit = 5;
    export default () => -2;`,
  "verl.mjs": `export const compute_score = () => 10; export default () => -2;`,
  "default.js": `export default () => 20;`,
  "common.cjs": `exports.computeScore = () => 30;`,
  "none.mjs": `export const a = 1; export const b = 2;`,
  "class.mjs": `export class computeScore {}`,
  "throws.mjs": `throw new RangeError("broken at import");`,
  "syntax.mjs": `export const = 1;`,
  "missing-inside.mjs": `import "./not-there.mjs";`,
  "missing-package.mjs": `import "@team/nowhere/judge";`,
  "managers.mjs": `
    export class First { async runSingle() { return { rewardScore: 1, rewardExtraInfo: {} }; } }
    export class Second { async runSingle() { return { rewardScore: 2, rewardExtraInfo: {} }; } }
    export const make = () => new First();`,
  "default-manager.mjs": `export default class Mine { async runSingle() { return { rewardScore: 3, rewardExtraInfo: {} }; } } export class Not {}`,
  "one-manager.mjs": `export const limit = 1; export class Only { async runSingle() { return { rewardScore: 4, rewardExtraInfo: {} }; } }`,
  "folder/index.ts": `export const computeScore = () => 0;`,
  "node_modules/rewards/package.json": JSON.stringify({
    name: "rewards",
    type: "module",
    exports: {
      ".": { import: "./main.js", require: "./main.cjs" },
      "./sub/*": { import: "./lib/*.js" },
    },
  }),
  "node_modules/rewards/main.js": `export const computeScore = () => 40; export const named = () => 41;`,
  "node_modules/rewards/main.cjs": `exports.computeScore = () => -40;`,
  "node_modules/rewards/lib/deep.js": `export const computeScore = () => 42;`,
  "node_modules/@team/plain/package.json": JSON.stringify({ name: "@team/plain", main: "lib.cjs" }),
  "node_modules/@team/plain/lib.cjs": `module.exports = () => 43;`,
};

beforeAll(() => {
  for (const [name, text] of Object.entries(FILES)) {
    const file = join(baseDirectory, name);
    mkdirSync(dirname(file), { recursive: true });
    writeFileSync(file, text);
  }
});
afterAll(() => {
  rmSync(baseDirectory, { recursive: true });
});

const input: ScoreInput = {
  dataSource: "toy",
  solutionStr: "four",
  groundTruth: "4",
  extraInfo: {},
};
const load = async (spec: string | RewardSpec): Promise<unknown> =>
  await (
    await loadComputeScore(spec, { baseDirectory })
  )(input);
const inBase = (name: string): string => join(baseDirectory, name);

describe("a score function is found", () => {
  const table: [string, unknown][] = [
    ["./reward.ts", 4],
    ["reward.ts", 4],
    ["folder/../reward.ts:compute_score", -1],
    ["reward.ts:default", -2],
    [inBase("reward.ts"), 4],
    [pathToFileURL(inBase("reward.ts")).href, 4],
    [`${pathToFileURL(inBase("reward.ts")).href}:compute_score`, -1],
    ["file://reward.ts", 4],
    ["verl.mjs", 10],
    ["default.js", 20],
    ["common.cjs", 30],
    ["pkg:rewards", 40],
    ["pkg://rewards", 40],
    ["pkg:rewards:named", 41],
    ["pkg:rewards/sub/deep", 42],
    ["pkg:@team/plain", 43],
  ];
  test.each(table)("%s", async (spec, score) => {
    expect(await load(spec)).toBe(score);
  });

  test("with rewardKwargs, which override arguments of the same name", async () => {
    expect(
      await load({
        path: "reward.ts",
        name: "other",
        rewardKwargs: { bonus: 3, groundTruth: "mine" },
      }),
    ).toEqual({ score: 3, groundTruth: "mine" });
  });

  test("from the current directory if no other is given", async () => {
    const cwd = vi.spyOn(process, "cwd").mockReturnValue(baseDirectory);
    const computeScore = await loadComputeScore("./verl.mjs");
    cwd.mockRestore();
    expect(await computeScore(input)).toBe(10);
  });
});

describe("what goes wrong is named", () => {
  const table: [string, Record<string, unknown>, RegExp][] = [
    [
      "nope.ts",
      { code: "REWARD_MODULE_NOT_FOUND", path: "nope.ts", tried: inBase("nope.ts") },
      /Relative paths start at/,
    ],
    [
      "/nowhere/reward.ts",
      { code: "REWARD_MODULE_NOT_FOUND", tried: "/nowhere/reward.ts" },
      /nowhere/,
    ],
    ["folder", { code: "REWARD_MODULE_NOT_FOUND" }, /directory: name the file/],
    ["rewards", { code: "REWARD_MODULE_NOT_FOUND" }, /write pkg:rewards/],
    [
      "pkg:nope",
      { code: "REWARD_MODULE_NOT_FOUND", path: "pkg:nope" },
      /Cannot find package 'nope'.*Install it/,
    ],
    [
      "pkg:rewards/hidden",
      { code: "REWARD_MODULE_NOT_FOUND" },
      /'.\/hidden' is not defined by "exports"/,
    ],
    [
      "pkg:rewards/sub/gone",
      { code: "REWARD_MODULE_NOT_FOUND", tried: inBase("node_modules/rewards/lib/gone.js") },
      /names a missing file/,
    ],
    ["pkg:", { code: "INVALID_REWARD_SPEC" }, /package name must follow/],
    ["pkg:./reward.ts", { code: "INVALID_REWARD_SPEC" }, /package name must follow/],
    ["https://example.com/reward.js", { code: "INVALID_REWARD_SPEC" }, /https:\/\//],
    [
      "throws.mjs",
      { code: "REWARD_MODULE_IMPORT", path: "throws.mjs", cause: expect.any(RangeError) },
      /broken at import/,
    ],
    ["syntax.mjs", { code: "REWARD_MODULE_IMPORT", cause: expect.any(Error) }, /syntax\.mjs/],
    [
      "missing-inside.mjs",
      { code: "REWARD_MODULE_IMPORT", cause: expect.any(Error) },
      /not-there\.mjs/,
    ],
    [
      "missing-package.mjs",
      { code: "REWARD_MODULE_IMPORT", cause: expect.any(Error) },
      /missing-package\.mjs\. It is not installed there: npm install @team\/nowhere$/,
    ],
    [
      "reward.ts:nope",
      { code: "REWARD_EXPORT_NOT_FOUND", wanted: ["nope"] },
      /Its exports: .*computeScore.*limit/,
    ],
    [
      "none.mjs",
      { code: "REWARD_EXPORT_NOT_FOUND", available: ["a", "b"] },
      /computeScore or compute_score or .*default/,
    ],
    [
      "reward.ts:limit",
      { code: "REWARD_EXPORT_TYPE", exportName: "limit", expected: "function" },
      /it is 5/,
    ],
    ["reward.ts:toString", { code: "REWARD_EXPORT_NOT_FOUND" }, /no export toString/],
    [
      "class.mjs",
      { code: "REWARD_EXPORT_TYPE" },
      /must be a function; it is the class computeScore/,
    ],
  ];
  test.each(table)("%s", async (spec, fields, message) => {
    const failure: unknown = await load(spec).catch((error: unknown) => error);
    expect(failure).toBeInstanceOf(Error);
    expect(failure).toMatchObject(fields);
    expect((failure as Error).message).toMatch(message);
  });
});

test("a package that only another package has is to be installed, whatever Node proposes", () => {
  const node = `Cannot find package '@a/b' imported from /my/judge.ts Did you mean to import "@a/b/dist/x.cjs"?`;
  const { message } = new RewardModuleImportError(
    "./judge.ts",
    "file:///my/judge.ts",
    new Error(node),
  );
  expect(message).toMatch(/from \/my\/judge\.ts\. It is not installed there: npm install @a\/b$/);
});

const managerScore = async (spec: string): Promise<number> => {
  const managerClass = await loadRewardManagerClass(spec, { baseDirectory });
  const manager = await createRegistry().create(managerClass);
  return (await manager.runSingle({ dataSource: "toy", response: "", groundTruth: null }))
    .rewardScore;
};

test("a field of a spec that there is not is refused, and so is an option of the loader", async () => {
  const spec = { path: "./reward.ts", name: "other", rewardKwarg: { bonus: 1 } };
  await expect(load(spec as never)).rejects.toMatchObject({
    code: "INVALID_REWARD_SPEC",
    message: expect.stringContaining(
      'Cannot read the reward spec "./reward.ts": its field rewardKwarg must be one of path, name, rewardKwargs, areKwargsShared; it is unknown.',
    ),
  });
  for (const loading of [loadComputeScore, loadRewardManagerClass]) {
    await expect(loading("./reward.ts", { baseDir: "" } as never)).rejects.toMatchObject({
      code: "INVALID_SCORER_OPTION",
      option: "baseDir",
    });
  }
});

describe("a reward manager class", () => {
  test("is found by name, as the default export, or as the only class", async () => {
    expect(await managerScore("managers.mjs:Second")).toBe(2);
    expect(await managerScore("default-manager.mjs")).toBe(3);
    expect(await managerScore("one-manager.mjs")).toBe(4);
  });

  test("must be named where there is a choice, exist, and be a class", async () => {
    await expect(managerScore("managers.mjs")).rejects.toMatchObject({
      code: "REWARD_EXPORT_NOT_FOUND",
      available: ["First", "Second", "make"],
    });
    await expect(managerScore("managers.mjs:Third")).rejects.toMatchObject({
      code: "REWARD_EXPORT_NOT_FOUND",
      wanted: ["Third"],
    });
    await expect(managerScore("managers.mjs:make")).rejects.toMatchObject({
      code: "REWARD_EXPORT_TYPE",
      expected: "class",
    });
    await expect(managerScore("class.mjs")).rejects.toMatchObject({
      code: "INVALID_REWARD_MANAGER",
      className: "computeScore",
    });
  });
});
