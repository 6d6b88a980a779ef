/**
 * Where programs live: loaders that are flags of Node, files of Node's test runner, bundles, source maps. test/workspace/places-*.full.test.ts run the tools of others on
 * the packed tarballs.
 */
import { join } from "node:path";
import { build, type BuildOptions } from "esbuild";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { coreForNode, ownGlobals, ownGlobalsFlags } from "../fixtures/own-globals.ts";
import { ended, prelude, Programs } from "../fixtures/program.ts";
import { isFull, sized } from "../fixtures/suite.ts";

let programs: Programs;
beforeAll(async () => {
  programs = await Programs.make();
});
afterAll(() => programs.remove());

/** As `outcomes`, with the whole of the first line, of the error that an actor died of, too. */
const told = `const told = async (refs) => (await Promise.allSettled(refs.map((ref) => ray.get(ref)))).map(
  ({ value, reason }) => reason === undefined ? value : String(reason.deathCause?.error ?? reason).split("\\n")[0]);
`;

const transform = "--experimental-transform-types";
const hasTransform = process.allowedNodeEnvironmentFlags.has(transform);

const kinds = `import * as ray from "@rayling/core";
enum Color { Red = "red" }
export const color = ray.remote(() => Color.Red);
export const Holder = ray.remote(class Holder {
  constructor(private readonly value: number) {}
  get(): number { return this.value; }
});
`;

describe("flags of the driver's Node that load modules", () => {
  test.runIf(hasTransform)(
    "load them in hosts, too, also in those with settings of their own",
    async () => {
      const { lines } = await programs.run({
        flags: [transform, "--no-warnings"],
        files: {
          "main.ts": `${prelude}
import { color, Holder } from "./kinds.ts";
const own = { runtimeEnv: { execArgv: ["--no-deprecation"] } };
say(await outcomes([color.remote(), Holder.remote(3).get.remote(), color.options(own).remote(), Holder.options(own).remote(4).get.remote()]));
${ended}`,
          "kinds.ts": kinds,
        },
      });
      expect(lines).toEqual([["red", 3, "red", 4]]);
    },
  );

  test("go to hosts whole, and those of a test runner or a watcher do not, with their values", async () => {
    const { lines } = await programs.run({
      flags: ["--import", "./first.mjs", "--test-name-pattern", "nothing", "--no-warnings"],
      files: {
        "main.mjs": `${prelude}
const loaded = ray.remote(() => globalThis.first);
const process = { isolation: "process" };
const own = { runtimeEnv: { execArgv: ["--no-deprecation"] } };
say(await outcomes([loaded.remote(), loaded.options(process).remote(), loaded.options(own).remote()]));
${ended}`,
        "first.mjs": "globalThis.first = 1;\n",
      },
    });
    expect(lines).toEqual([[1, 1, 1]]);
  });

  test("say how an unhandled rejection ends, and how a program is read that is no file", async () => {
    const { NODE_OPTIONS = "" } = process.env;
    const { lines, told: warned } = await programs.run({
      isText: true,
      flags: ["--input-type=module", "--unhandled-rejections=warn"],
      env: { NODE_OPTIONS: `${NODE_OPTIONS} --input-type=module` },
      files: {
        "main.mjs": `${prelude}
const { one, Loose } = await import(process.cwd() + "/loose.mjs");
const own = { runtimeEnv: { execArgv: ["--no-deprecation"] } };
const all = ["thread", "process", "shared"].map((isolation) => ({ isolation }));
say(await outcomes([one.remote(), one.options(own).remote(), one.options({ isolation: "process" }).remote()]));
const actors = [...all, own].map((options) => Loose.options(options).remote());
say(await outcomes(actors.map((actor) => actor.loosen.remote())));
say(await outcomes(actors.map((actor) => actor.get.remote())));
${ended}`,
        "loose.mjs": `import * as ray from "@rayling/core";
export const one = ray.remote(() => 1);
export const Loose = ray.remote(class Loose {
  loosen() { void Promise.reject(new Error("loose")); }
  get() { return 2; }
});
`,
      },
    });
    expect(lines).toEqual([
      [1, 1, 1],
      [null, null, null, null],
      [2, 2, 2, 2],
    ]);
    expect(warned).toContain("UnhandledPromiseRejectionWarning");
  });

  test("may freeze what is built in", async () => {
    const { lines } = await programs.run({
      flags: ["--frozen-intrinsics", "--no-warnings"],
      files: {
        "main.mjs": `${prelude}
const one = ray.remote(() => 1);
const Two = ray.remote(class Two { get() { return 2; } });
say(await outcomes([one.remote(), Two.remote().get.remote()]));
try { one.remote(Symbol("not to be sent")); } catch (error) { say([error.name]); }
${ended}`,
      },
    });
    expect(lines).toEqual([[1, 2], ["NotEncodableError"]]);
  });
});

describe("TypeScript that Node cannot strip is refused with its line and what to write", () => {
  const cases: Readonly<Record<string, readonly [code: string, why: RegExp]>> = {
    "an enum": ["enum Color { Red }", /kinds\.ts:2: TypeScript enum .* Write an object "as const"/],
    "a parameter property": [
      "export class Point { constructor(readonly x: number) {} }",
      /kinds\.ts:2: TypeScript parameter property .* Declare the field, and assign it in the constructor/,
    ],
    "a namespace": [
      "namespace Shapes { export const corners = 4; }",
      /kinds\.ts:2: TypeScript namespace .* Export its parts from a module/,
    ],
    "a decorator": [
      "const seen = (value: unknown): void => undefined; // @not\n@seen class Point {}",
      /kinds\.ts:3: Node knows no decorators .* Call the decorator as a function/,
    ],
    "import equals": [
      'import fs = require("node:fs");',
      /kinds\.ts:2: TypeScript import equals .* Write import x from "x"/,
    ],
  };

  test(Object.keys(cases).join(", "), async () => {
    const codes = Object.values(cases);
    const modules = codes.map(([code], index) => [
      `${index}/kinds.ts`,
      `// The second line is wrong.\n${code}\nexport const run = (): number => 1;\n`,
    ]);
    const { lines } = await programs.run({
      files: {
        // The driver has them from elsewhere, as under a loader of its own.
        "main.mjs": `${prelude}${told}
for (let index = 0; index < ${codes.length}; index++) {
  const module = new URL(index + "/kinds.ts", import.meta.url);
  const run = ray.remote(() => 1, { module, exportName: "run" });
  const Actor = ray.remote(class { run() { return 1; } }, { module, exportName: "Actor" });
  if (isDriver) say(await told([run.remote(), Actor.remote().run.remote()]));
}
${ended}`,
        ...(Object.fromEntries(modules) as Readonly<Record<string, string>>),
      },
    });
    expect(lines).toHaveLength(codes.length);
    for (const [index, [, why]] of codes.entries()) {
      const refused = expect.stringMatching(why) as string;
      expect(lines[index]).toEqual([refused, refused]);
      expect((lines as string[][])[index]?.[0]).toContain('execArgv: ["--import=tsx"]');
    }
  });

  test("imports that only a loader finds, and calls of test runners that workers lack, say so", async () => {
    const { lines } = await programs.run({
      files: {
        "main.mjs": `${prelude}${told}
const named = (file) => ray.remote(() => 1, { module: new URL(file, import.meta.url), exportName: "run" });
say(await told(["short.mjs", "alias.mjs", "jest.mjs", "globals.mjs", "globals.cjs", "own.mjs", "own.ts"].map((file) => named(file).remote())));
${ended}`,
        "short.mjs": 'import "./other";\nexport const run = () => 1;\n',
        "alias.mjs": 'import "@/other";\nexport const run = () => 1;\n',
        "jest.mjs": 'describe("x", () => undefined);\nexport const run = () => 1;\n',
        "globals.mjs": 'import { test } from "@jest/globals";\nexport const run = () => 1;\n',
        "globals.cjs": 'require("@jest/globals");\nexports.run = () => 1;\n',
        // As it is outside of jest.
        "node_modules/@jest/globals/index.js":
          "throw new Error('Do not import `@jest/globals` outside of the Jest test environment');\n",
        "own.mjs": 'throw new Error("of its own");\nexport const run = () => 1;\n',
        "own.ts": 'JSON.parse("{");\nexport const run = (): number => 1;\n',
        "other.mjs": "",
      },
    });
    expect(lines).toEqual([
      [
        expect.stringMatching(/Cannot find module '.*other'.*names of files whole/),
        expect.stringMatching(/Cannot find package '@\/other'|Invalid module "@\/other"/),
        expect.stringMatching(/a call of a test runner, .*describe is not defined\. Move/),
        expect.stringMatching(/import of a test runner, .*Named export 'test' .* file of its own/),
        expect.stringMatching(/import of a test runner, .*Do not import .* file of its own/),
        "Error: of its own",
        expect.stringMatching(/^SyntaxError: /),
      ],
    ]);
  });
});

describe("a file of Node's test runner", () => {
  const files = (prefix: string): Readonly<Record<string, string>> => ({
    "places.test.mjs": `${prelude}${prefix}
const two = ray.remote(() => 2);
test("once", async () => {
  say("ran");
  say(await outcomes([two.remote(), two.remote()]));
});
describe("suite", () => { it("inner", () => say("inner ran")); });
after(() => ray.shutdown());
`,
  });
  const imports = {
    "imports names": 'import { after, describe, it, test } from "node:test";',
    "imports all": 'import test from "node:test";\nconst { after, describe, it } = test;',
    requires:
      'import { createRequire } from "node:module";\nconst test = createRequire(import.meta.url)("node:test");\nconst { after, describe, it } = test;',
  };

  test.each(Object.entries(imports))("that %s runs no test in hosts", async (how, prefix) => {
    // Run by itself or by a runner: how it imports the module is the same to both.
    const byRunner = how === "imports names" || isFull ? [["--test", "--test-reporter=tap"]] : [];
    for (const flags of [[], ...byRunner]) {
      const { stdout } = await programs.run({ files: files(prefix), flags });
      // A reporter puts what a test prints behind a "#".
      const said = stdout.split("\n").map((line) => line.replace(/^# /, ""));
      expect(said.filter((line) => /^["[]/.test(line)).toSorted()).toEqual([
        '"inner ran"',
        '"ran"',
        "[2,2]",
      ]);
      expect(stdout).not.toContain("(host-");
    }
  });
});

test("with source maps no frame of the runtime's own is in a stack, and the user's are", async () => {
  const { lines } = await programs.run({
    flags: ["--enable-source-maps"],
    files: {
      "main.mjs": `${prelude}
const fail = ray.remote(function fail() { throw new Error("task"); });
const Actor = ray.remote(class Actor { async fail() { await null; throw new Error("actor"); } constructor(wrong) { if (wrong) throw new Error("init"); } });
for (const call of [() => fail.remote(), () => Actor.remote(false).fail.remote(), () => Actor.remote(true).fail.remote()]) {
  try { await ray.get(call()); } catch (error) { say([error.stack, error.cause?.stack ?? ""]); }
}
${ended}`,
    },
  });
  expect(lines).toHaveLength(3);
  for (const [stack, cause] of lines as readonly (readonly [string, string])[]) {
    const frames = `${stack}\n${cause}`.split("\n").filter((line) => /^\s+at /.test(line));
    expect(frames.filter((line) => /packages[\\/]|node:internal/.test(line))).toEqual([]);
    expect(frames.some((line) => /main\.mjs:\d+:\d+/.test(line))).toBe(true);
  }
});

test("a text that is evaluated under the name of a file, without a map, is never taken for that file", async () => {
  const { lines } = await programs.run({
    files: {
      // What is put around it has two lines, so that both calls are in the same place.
      "main.mjs": `${prelude}${told}
import { fileURLToPath } from "node:url";
const text = (late) => late + 'return ray.remote(() => "of the text");\\n//# sourceURL=' + fileURLToPath(new URL("made.mjs", import.meta.url));
const AsyncFunction = (async () => undefined).constructor;
const made = [];
for (const late of ["", "await 0; "]) made.push(await new AsyncFunction("ray", text(late))(ray));
say(await told(made.map((one) => one.remote())));
${ended}`,
      "made.mjs": `import * as ray from "@rayling/core";

       ray.remote(() => "of the file"); ray.remote(() => "of the file");
`,
    },
  });
  const refused = expect.stringMatching(
    /the driver evaluates another text than that of the file \(.*made\.mjs:3:\d+ of/,
  ) as string;
  expect(lines).toEqual([[refused, refused]]);
});

describe("a bundle", () => {
  const files = {
    "main.mjs": `${prelude}
import { make } from "./made.mjs";
import { BudgetError } from "./errors.mjs";
const one = make("one"), two = make("two");
const Purse = ray.remote(class Purse { spend() { throw new BudgetError("over"); } });
const main = async () => {
  const error = await ray.get(Purse.remote().spend.remote()).catch((thrown) => thrown);
  say([...await outcomes([one.remote(), two.remote()]), error instanceof BudgetError]);
  ${ended}
};
main();
`,
    "made.mjs":
      'import * as ray from "@rayling/core";\nexport const make = (name) => ray.remote(() => name);\n',
    "errors.mjs": "export class BudgetError extends Error {}\n",
  };
  const external = ["rayling", "@rayling/*"];
  const kindsOfBundle: Readonly<Record<string, BuildOptions & { readonly format: "esm" | "cjs" }>> =
    {
      "an ES module": { format: "esm" },
      "an ES module, minified": { format: "esm", minify: true },
      CommonJS: { format: "cjs" },
      "CommonJS, minified": { format: "cjs", minify: true },
    };

  // Neither format knows whether names are short: the gate has each in one way.
  const inGate = ["an ES module", "CommonJS, minified"];
  const bundles = Object.entries(kindsOfBundle).filter(([kind]) => isFull || inGate.includes(kind));

  /** Its text. */
  async function bundle(options: BuildOptions): Promise<string> {
    const folder = await programs.write(files);
    const { outputFiles } = await build({
      ...options,
      absWorkingDir: folder,
      entryPoints: [join(folder, "main.mjs")],
      bundle: true,
      platform: "node",
      target: "node22.18",
      conditions: ["built"],
      write: false,
      logLevel: "error",
      logOverride: { "empty-import-meta": "silent" },
    });
    return outputFiles[0]?.text ?? "";
  }

  test.each(bundles)(
    "that leaves the package out works like any script: %s",
    async (_, options) => {
      const name = options.format === "cjs" ? "main.cjs" : "main.mjs";
      const text = await bundle({ ...options, external });
      const { lines } = await programs.run({ files: { [name]: text } });
      expect(lines).toEqual([["one", "two", true]]);
    },
  );

  test.each(bundles)(
    "that holds the package says in one line how to leave it out: %s",
    async (_, options) => {
      const name = options.format === "cjs" ? "main.cjs" : "main.mjs";
      const text = await bundle(options);
      const brief =
        'process.on("uncaughtException", (error) => { console.log(JSON.stringify([error.code, error.message])); process.exit(0); });\n';
      const { lines } = await programs.run({
        flags: ["--import", "./brief.mjs"],
        files: { [name]: text, "brief.mjs": brief },
      });
      expect(lines).toEqual([
        ["SYSTEM", expect.stringMatching(/^rayling is inside the bundle .*main\.[mc]js, where/)],
      ]);
      for (const setting of ['external: ["rayling", "@rayling/*"]', "externals: [/^@?rayling/]"]) {
        expect((lines as string[][])[0]?.[1]).toContain(setting);
      }
    },
  );
});

test("with globals of its own a program has its places from Node's stacks, which a runner maps", async () => {
  const main = `import { join } from "node:path";
import vm from "node:vm";
import { loadCore } from "./own-globals.mjs";
const { core, context } = await loadCore(process.argv[2]);
Error.prepareStackTrace = (error, sites) =>
  [String(error), ...sites.map((site) => "    at " + String(site).replace("moved.ts:1:", "moved.ts:7:"))].join("\\n");
context.ray = core;
const filename = join(import.meta.dirname, "moved.ts");
const one = vm.runInContext("ray.remote(() => 1)", context, { filename });
await core.init();
await core.get(one.remote()).catch(({ message }) => console.log(JSON.stringify(message)));
await core.shutdown();
`;
  const { lines } = await programs.run({
    files: { "main.mjs": main, "own-globals.mjs": ownGlobals, "moved.ts": "export {};\n" },
    flags: ownGlobalsFlags,
    args: [await coreForNode()],
  });
  expect(lines).toEqual([expect.stringMatching(/moved\.ts:7:5\) did not run while the module/)]);
});

describe("a driver whose stacks are made by a function of the user's", () => {
  const made = `import * as ray from "@rayling/core";
const make = (value: number) => ray.remote(() => value);
async function later(value: number) {
  await null;
  return make(value);
}
class Holder { static readonly task = make(5); }
export const tasks = [
  ray.remote(() => 1),
  make(2),
  ...[3].map((value) => make(value)),
  await later(4),
  Holder.task,
  (0, eval)("(make) => make(6)")(make),
  new Function("make", "return make(7)")(make),
];
//# sourceURL=file:///elsewhere/made.ts
`;
  const getter = `Object.defineProperty(Error, "prepareStackTrace", { get: () => undefined });`;
  const pair = `let own; Object.defineProperty(Error, "prepareStackTrace", { get: () => own, set: (made) => { own = made; } });`;
  test.each(sized({ gate: [pair], full: [getter, pair] }))(
    "and that stays as it was: %s",
    async (accessor) => {
      const { lines, told: said } = await programs.run({
        files: {
          "main.ts": `${prelude}
if (isDriver) { ${accessor} }
const { one } = await import("./one.ts");
say([typeof new Error("stack").stack, ...(await outcomes([one.remote()]))]);
${ended}`,
          "one.ts": `import * as ray from "@rayling/core";
export const one = ray.remote(() => 1);
//# sourceURL=file:///elsewhere/one.ts
`,
        },
      });
      expect(said).toBe("");
      expect(lines).toEqual([["string", 1]]);
    },
  );

  test.each(["nothing", "the same text"])(
    "and its hosts, which have none, agree on places: %s",
    async (kind) => {
      const maker = `Error.prepareStackTrace = (error, sites) => [String(error), ...sites.map((site) => "    at " + site)].join("\\n");`;
      const { lines, told: said } = await programs.run({
        files: {
          "main.ts": `${prelude}
if (isDriver && ${kind !== "nothing"}) { ${maker} }
const { tasks } = await import("./made.ts");
say(await outcomes(tasks.map((task) => task.remote())));
${ended}`,
          "made.ts": made,
        },
      });
      expect(said).toBe("");
      expect(lines).toEqual([[1, 2, 3, 4, 5, 6, 7]]);
    },
  );
});

test("a remote() call in a chunk of Next.js is told to go to a file that is not bundled", async () => {
  const { lines } = await programs.run({
    files: {
      ".next/server/chunk.mjs": `${prelude}${told}
// Its modules run when Next.js asks for them.
const modules = { actors: () => ray.remote(() => 1) };
if (isDriver) {
  say(await told([modules.actors().remote()]));
  ${ended}}
`,
    },
  });
  expect(lines).toEqual([
    [expect.stringMatching(/did not run .* chunk of Next\.js, .*turbopackIgnore/)],
  ]);
});

test("workers of node:cluster have sessions of their own, whose ports are no other's", async () => {
  const { lines } = await programs.run({
    files: {
      "main.mjs": `import cluster from "node:cluster";
import * as ray from "@rayling/core";
if (cluster.isPrimary) {
  const ports = [];
  let listening = 0;
  cluster.on("listening", () => void (listening += 1));
  cluster.on("message", (_, port) => {
    if (ports.push(port) < 2) return;
    console.log(JSON.stringify([new Set(ports).size, listening]));
    for (const worker of Object.values(cluster.workers)) worker.disconnect();
  });
  cluster.fork();
  cluster.fork();
} else {
  const { metricsPort } = await ray.init({ metricsPort: 0, metricsToken: "t".repeat(32), prewarm: 0 });
  process.send(metricsPort);
}
`,
    },
  });
  expect(lines).toEqual([[2, 0]]);
});
