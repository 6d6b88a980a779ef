/**
 * Test runners, loaders and CommonJS, on the packed tarballs and run for real. Full suite only: the tools are to be fetched; the gate's own tests run under vitest, and
 * test/core/identity.test.ts has CommonJS.
 */
import { readFileSync } from "node:fs";
import { stripTypeScriptTypes } from "node:module";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, test, type TestContext } from "vitest";
import { expectReports, fixtures, makeProject, type Project } from "./places.ts";

const tools = { jest: "30.5.2", tsx: "4.23.15", vite: "8.3.8", vitest: "5.1.1" };

let project: Project;
beforeAll(async () => {
  project = await makeProject(tools);
}, 600_000);
afterAll(() => project.remove());

const needsTools = ({ skip }: Pick<TestContext, "skip">): void =>
  skip(project.away !== undefined, project.away);

/** A machine may be slow: their own limit is 5 s. */
const patience = "--testTimeout=120000";
const vitest = ["node_modules/vitest/vitest.mjs", "run", patience, "--hookTimeout=120000"] as const;

/** Remotes of the test file itself. One of them only the driver makes, which moves no other. */
const own = (isDriver: string): string => `
if (${isDriver}) make("audit");
const mine = make("mine"), yours = make("yours");
const [a, b, c] = ["a", "b", "c"].map((name) => ray.remote(() => name));
`;
const more = { mine: "mine", yours: "yours", a: "a", b: "b", c: "c", early: "early" };
const given = "{ mine, yours, a, b, c, early }";
const imports = (extension: string): string => `import * as ray from "rayling";
import { early } from "../app/early${extension}";
import { make } from "../app/made${extension}";
import { report } from "../app/report${extension}";
`;

test("a plain script, as it is and with source maps", async (context) => {
  needsTools(context);
  expectReports(await project.node(["app/main.ts"]));
  expectReports(await project.node(["--enable-source-maps", "app/main.ts"]));
});

describe("vitest", () => {
  test.for(["forks", "threads", "vmForks", "vmThreads"])(
    "in its pool %s: a test file with remotes, and those that it imports",
    async (pool, context) => {
      needsTools(context);
      await project.write({
        "vitest/places.test.ts": `import { afterAll, beforeAll, expect, test } from "vitest";
${imports(".ts")}
declare const globalThis: { readonly __vitest_worker__?: unknown };
${own("globalThis.__vitest_worker__ !== undefined")}
beforeAll(() => ray.init());
afterAll(() => ray.shutdown());
test.each(["thread", "process"] as const)("%s", async (isolation) => {
  console.log(JSON.stringify(await report(isolation, ${given})));
});
`,
      });
      expectReports(
        await project.node([...vitest, "--root", "vitest", "--pool", pool, "--no-color"]),
        { more },
      );
    },
  );

  const kinds = `import * as ray from "rayling";
export enum Color { Red = "red" }
export class Point { constructor(readonly x: number) {} }
export const color = ray.remote(() => Color.Red);
export const Holder = ray.remote(class Holder {
  constructor(private readonly point: Point["x"]) {}
  get(): number { return this.point; }
});
`;
  const kindsTest = (
    options: string,
  ): string => `import { afterAll, beforeAll, test } from "vitest";
import * as ray from "rayling";
import { color, Holder } from "./kinds.ts";
beforeAll(() => ray.init(${options}));
afterAll(() => ray.shutdown());
test("kinds", async () => {
  for (const isolation of ["thread", "process"] as const) {
    const refs = [color.options({ isolation }).remote(), Holder.options({ isolation }).remote(3).get.remote()];
    const told = await Promise.allSettled(refs.map((ref) => ray.get<unknown>(ref)));
    console.log("told " + JSON.stringify(told.map((end) => end.status === "fulfilled" ? end.value : (end.reason.deathCause?.error ?? end.reason).message)));
  }
});
`;
  const toldBy = async (file: string): Promise<readonly (readonly unknown[])[]> => {
    const { stdout, stderr } = await project.node([
      ...vitest,
      "--root",
      "vitest-kinds",
      file,
      "--no-color",
    ]);
    const lines = stdout.split("\n").filter((line) => line.startsWith("told "));
    expect(lines, stdout + stderr).toHaveLength(2);
    return lines.map((line) => JSON.parse(line.slice("told ".length)) as readonly unknown[]);
  };

  test("TypeScript that Node cannot strip: the error names the line, and what to write or to set", async (context) => {
    needsTools(context);
    await project.write({
      "vitest-kinds/kinds.ts": kinds,
      "vitest-kinds/plain.test.ts": kindsTest(""),
    });
    const refused = expect.stringMatching(
      /cannot be found by a worker: .*kinds\.ts:2: TypeScript enum is not supported in strip-only mode\. Write an object "as const" .*execArgv: \["--import=tsx"\]/,
    ) as string;
    expect(await toldBy("plain")).toEqual([
      [refused, refused],
      [refused, refused],
    ]);
  });

  test.for(["--import=tsx", "--experimental-transform-types"])(
    "such TypeScript runs in workers with %s",
    async (flag, context) => {
      needsTools(context);
      await project.write({
        "vitest-kinds/kinds.ts": kinds,
        "vitest-kinds/flag.test.ts": kindsTest(
          `{ runtimeEnv: { execArgv: ["${flag}", "--no-warnings"] } }`,
        ),
      });
      expect(await toldBy("flag")).toEqual([
        ["red", 3],
        ["red", 3],
      ]);
    },
  );

  test("a remote() call below the first test is told to go above it", async (context) => {
    needsTools(context);
    await project.write({
      "vitest-below/below.test.ts": `import { test } from "vitest";
import * as ray from "rayling";
test("first", async () => {
  const { message } = await ray.get(below.remote()).catch((error: unknown) => error as Error) as Error;
  console.log("told " + message);
  await ray.shutdown();
});
const below = ray.remote(() => 1);
`,
    });
    const { stdout } = await project.node([...vitest, "--root", "vitest-below", "--no-color"]);
    expect(stdout).toMatch(
      /told .*cannot be found by a worker: its module stopped in a worker at a call of a test runner.*Move the remote\(\) call above the first test/,
    );
  });
});

describe("jest", () => {
  const jest = ["node_modules/jest/bin/jest.js", patience] as const;
  const vmModules = { NODE_OPTIONS: "--experimental-vm-modules --no-warnings" };
  const config = (match: string): string =>
    JSON.stringify({
      rootDir: "..",
      testMatch: [`<rootDir>/jest/${match}`],
      transform: {},
      moduleFileExtensions: ["mjs", "js", "cjs", "json"],
    });

  test("ES modules, with --experimental-vm-modules", async (context) => {
    needsTools(context);
    const names = ["actors", "early", "errors", "evaluated", "late", "made", "report"];
    await project.write({
      ...Object.fromEntries(names.map((name) => [`app/${name}.mjs`, asModule(name)])),
      "jest/places.test.mjs": `${imports(".mjs")}${own('typeof jest !== "undefined" || typeof beforeAll !== "undefined"')}
beforeAll(() => ray.init());
afterAll(() => ray.shutdown());
test.each(["thread", "process"])("%s", async (isolation) => {
  process.stdout.write(JSON.stringify(await report(isolation, ${given})) + "\\n");
});
`,
      "jest/modules.json": config("places.test.mjs"),
    });
    const ended = await project.node([...jest, "--config", "jest/modules.json"], vmModules);
    expectReports(ended, { more, extension: ".mjs" });
  });

  const common = {
    "jest/errors.cjs": "exports.BudgetError = class BudgetError extends Error {};\n",
    "jest/common.test.cjs": `const ray = require("rayling");
const { BudgetError } = require("./errors.cjs");
const make = (name) => ray.remote(() => name);
const one = make("one"), two = make("two");
const fail = ray.remote(() => { throw new BudgetError("no"); });
afterAll(() => ray.shutdown());
test.each(["thread", "process"])("%s", async (isolation) => {
  expect(await ray.get([one, two].map((remote) => remote.options({ isolation }).remote()))).toEqual(["one", "two"]);
  await expect(ray.get(fail.options({ isolation }).remote())).rejects.toBeInstanceOf(BudgetError);
});
`,
    "jest/common.json": config("common.test.cjs"),
  };

  test("CommonJS, with --experimental-vm-modules", async (context) => {
    needsTools(context);
    await project.write(common);
    const { code, stderr } = await project.node(
      [...jest, "--config", "jest/common.json"],
      vmModules,
    );
    expect({ code, stderr }).toEqual({
      code: 0,
      stderr: expect.stringContaining("2 passed") as string,
    });
  });

  test("without that flag one line says what is needed", async (context) => {
    needsTools(context);
    await project.write(common);
    const { code, stderr } = await project.node([...jest, "--config", "jest/common.json"]);
    expect(code).toBe(1);
    expect(stderr).toMatch(
      /rayling is an ES module, and this loader cannot require one\. Under jest: .*NODE_OPTIONS=--experimental-vm-modules/,
    );
  });
});

describe("node:test", () => {
  test.for([["--test"], ["--test", "--test-isolation=none"], []])(
    "with the flags %j: each test runs once, in the driver",
    async (flags, context) => {
      needsTools(context);
      await project.write({
        "node-test/places.test.ts": `import { after, before, describe, it, test } from "node:test";
${imports(".ts")}
${own("import.meta.main")}
before(() => ray.init());
after(() => ray.shutdown());
test("body", () => console.log("body ran"));
describe("suite", () => { it("inner", () => console.log("inner ran")); });
for (const isolation of ["thread", "process"] as const) {
  test(isolation, async () => console.log(JSON.stringify(await report(isolation, ${given}))));
}
`,
      });
      const ended = await project.node([...flags, "node-test/places.test.ts"]);
      expectReports(ended, { more });
      expect(ended.stdout.match(/(body|inner) ran/g)?.toSorted()).toEqual([
        "body ran",
        "inner ran",
      ]);
      expect(ended.stdout + ended.stderr).not.toContain("(host-");
    },
  );

  test("CommonJS", async (context) => {
    needsTools(context);
    await project.write({
      "node-test/common.test.cjs": `const test = require("node:test");
const assert = require("node:assert");
const ray = require("rayling");
const two = ray.remote(() => 2);
test("body", () => console.log("body ran"));
for (const isolation of ["thread", "process"]) {
  test(isolation, async () => assert.equal(await ray.get(two.options({ isolation }).remote()), 2));
}
test.after(() => ray.shutdown());
`,
    });
    const { code, stdout } = await project.node(["--test", "node-test/common.test.cjs"]);
    expect({ code, bodies: stdout.match(/body ran/g) }).toEqual({ code: 0, bodies: ["body ran"] });
    expect(stdout).not.toContain("(host-");
  });
});

describe("vite's development server", () => {
  const start = `import { createServer, createServerModuleRunner } from "vite";
const server = await createServer({ configFile: false, logLevel: "silent", appType: "custom", server: { middlewareMode: true, ws: false } });
`;
  const load =
    'await server.ssrLoadModule("/app/main.ts").catch((error) => console.log(error.message));\n';

  test("runs modules by its runner", async (context) => {
    needsTools(context);
    await project.write({
      "vite-runner.mjs": `${start}await createServerModuleRunner(server.environments.ssr).import("/app/main.ts");
await server.close();
`,
    });
    expectReports(await project.node(["vite-runner.mjs"]));
  });

  test("loads modules by ssrLoadModule with source maps, and without them refuses", async (context) => {
    needsTools(context);
    await project.write({
      "vite-load.mjs": `${start}${load}await server.close();\nprocess.exit();\n`,
    });
    expectReports(await project.node(["--enable-source-maps", "vite-load.mjs"]));
    const { stdout } = await project.node(["vite-load.mjs"]);
    expect(stdout).toMatch(
      /cannot be found by a worker: the driver evaluates another text than that of the file.*--enable-source-maps/,
    );
  });
});

describe("tsx", () => {
  const kinds = `import * as ray from "rayling";
import { early } from "../app/early";
import { make } from "../app/made.js";
import { report } from "../app/report.ts";
enum Color { Red = "red" }
namespace Shapes { export const corners = 4; }
class Point { constructor(readonly x: number, public y: number) {} }
const color = ray.remote(() => Color.Red);
const corners = ray.remote(() => Shapes.corners);
const point = ray.remote((): number => new Point(1, 2).y);
${own("process.env.PLACES_DRIVER === String(process.pid) && isMainThread")}
`;
  const start =
    'import { isMainThread } from "node:worker_threads";\nprocess.env.PLACES_DRIVER ??= String(process.pid);\n';
  const kindsMore = { ...more, color: "red", corners: 4, point: 2 };
  const loop = `for (const isolation of ["thread", "process"] as const) {
  console.log(JSON.stringify(await report(isolation, { mine, yours, a, b, c, early, color, corners, point })));
}
await ray.shutdown();
`;
  const tsx = "node_modules/tsx/dist/cli.mjs";

  test.for<[string, readonly string[], Readonly<Record<string, string>>]>([
    ["tsx", [tsx], {}],
    ["node --import tsx", ["--import", "tsx"], {}],
    ["NODE_OPTIONS", [], { NODE_OPTIONS: "--import=tsx" }],
  ])(
    "enums, namespaces, parameter properties and short imports, by %s",
    async ([, flags, env], context) => {
      needsTools(context);
      await project.write({ "tsx/main.ts": `${start}${kinds}await ray.init();\n${loop}` });
      expectReports(await project.node([...flags, "tsx/main.ts"], env), { more: kindsMore });
    },
  );

  test("a CommonJS project, where all that is required becomes CommonJS", async (context) => {
    needsTools(context);
    const names = ["actors", "early", "errors", "evaluated", "late", "made", "report"];
    const copies = names.map((name) => [
      `tsx-common/app/${name}.ts`,
      readFileSync(join(fixtures, `${name}.ts`), "utf8"),
    ]);
    await project.write({
      ...(Object.fromEntries(copies) as Record<string, string>),
      "tsx-common/package.json": "{}",
      "tsx-common/src/main.ts": `${start}${kinds}async function main() {
await ray.init();
${loop}}
main();
`,
    });
    const ended = await project.node([tsx, "tsx-common/src/main.ts"]);
    expectReports(ended, { more: kindsMore });
  });

  test("a CommonJS project, in whose workers alone it is", async (context) => {
    needsTools(context);
    await project.write({
      "tsx-workers/package.json": "{}",
      "tsx-workers/main.ts": `import * as ray from "rayling";
interface Opt { n: number }
const make = (value: number) => ray.remote(() => value);
const Holder = ray.remote(class Holder {
  opt: Opt; constructor(opt: Opt) { this.opt = opt; } get(): number { return this.opt.n as number; }
});
const one = make(1);
const two = make(2);
const [three] = [3].map(make);
async function main(): Promise<void> {
  await ray.init({ runtimeEnv: { execArgv: ["--import=tsx"] } });
  for (const isolation of ["thread", "process"] as const) {
    const refs = [one, two, three!].map((task) => task.options({ isolation }).remote());
    console.log(JSON.stringify(await ray.get([...refs, Holder.options({ isolation }).remote({ n: 4 }).get.remote()])));
  }
  await ray.shutdown();
}
void main();
`,
    });
    for (const flags of [[], ["--import=tsx"]]) {
      const { stdout, stderr } = await project.node([...flags, "tsx-workers/main.ts"]);
      expect(stdout, stderr).toBe("[1,2,3,4]\n[1,2,3,4]\n");
    }
  });
});

test("CommonJS: require gives rayling", async (context) => {
  needsTools(context);
  await project.write({
    "common/package.json": "{}",
    "common/errors.js": "exports.BudgetError = class BudgetError extends Error {};\n",
    "common/main.js": `const ray = require("rayling");
const { BudgetError } = require("./errors.js");
const make = (name) => ray.remote(() => name);
const one = make("one"), two = make("two");
const Purse = ray.remote(class Purse { spend() { throw new BudgetError("no"); } });
async function main() {
  for (const isolation of ["thread", "process"]) {
    const names = await ray.get([one, two].map((remote) => remote.options({ isolation }).remote()));
    const error = await ray.get(Purse.options({ isolation }).remote().spend.remote()).catch((thrown) => thrown);
    console.log(JSON.stringify([names, error instanceof BudgetError, error.stack.split("\\n").filter((line) => / at /.test(line))]));
  }
  await ray.shutdown();
}
main();
`,
  });
  const { stdout, stderr } = await project.node(["common/main.js"]);
  const lines = stdout
    .trim()
    .split("\n")
    .map((line) => JSON.parse(line) as unknown);
  const stack = [
    expect.stringMatching(/at Purse\.spend \(.*common[\\/]main\.js:5:/),
    expect.stringMatching(/at <Purse\.spend on host-/),
    expect.stringMatching(/at async main \(.*common[\\/]main\.js:9:/),
  ];
  expect(lines, stderr).toEqual([
    [["one", "two"], true, stack],
    [["one", "two"], true, stack],
  ]);
});

/** A fixture as an ES module of JavaScript: jest takes no TypeScript without more tools. */
function asModule(name: string): string {
  const text = readFileSync(join(fixtures, `${name}.ts`), "utf8");
  return stripTypeScriptTypes(text).replaceAll('.ts"', '.mjs"');
}
