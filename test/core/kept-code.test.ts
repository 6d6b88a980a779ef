/** Programs and hosts keep what V8 has compiled of the published core, for those of later programs. */
import {
  chmod,
  cp,
  mkdir,
  mkdtemp,
  readdir,
  readFile,
  rm,
  stat,
  utimes,
  writeFile,
} from "node:fs/promises";
import { tmpdir } from "node:os";
import { basename, dirname, join } from "node:path";
import { pathToFileURL } from "node:url";
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test, vi } from "vitest";
import { coreForNode, ownGlobals, ownGlobalsFlags } from "../fixtures/own-globals.ts";
import { type Printed, Programs } from "../fixtures/program.ts";
import { sized } from "../fixtures/suite.ts";

let programs: Programs;
let folder: string;
/** What a first program has left, for those that come after one. */
let filled: string;
let firstRun: Printed;

beforeAll(async () => {
  programs = await Programs.make();
  filled = await mkdtemp(join(tmpdir(), "kept-code-"));
  const env = { NODE_COMPILE_CACHE: filled, NODE_DISABLE_COMPILE_CACHE: undefined };
  firstRun = await programs.run({ files, args: ["2"], env });
});
afterAll(async () => {
  await programs.remove();
  await rm(filled, { recursive: true, force: true });
});
beforeEach(async () => {
  folder = await mkdtemp(join(tmpdir(), "kept-code-"));
  vi.stubEnv("NODE_COMPILE_CACHE", folder);
  vi.stubEnv("NODE_DISABLE_COMPILE_CACHE", undefined);
});
afterEach(async () => {
  vi.unstubAllEnvs();
  await rm(folder, { recursive: true, force: true });
});

/** With an argument it goes on until there are so many kept files other than those of these numbers. */
const program = `import { readdirSync, statSync } from "node:fs";
import { join } from "node:path";
import * as ray from "@rayling/core";
import { Probe } from "./probe.ts";
await ray.init({ numCpus: 1, prewarm: 0 });
const actor = Probe.options({ isolation: "thread" }).remote();
const answer = await ray.get(actor.look.remote(await ray.put([1, 2])));
const folder = process.env.NODE_COMPILE_CACHE ?? ".";
const [, , wanted, ...before] = process.argv;
const added = () => readdirSync(folder, { recursive: true }).filter((name) => {
  const isKept = String(name).endsWith(".rayling");
  return isKept && !before.includes(String(statSync(join(folder, String(name))).ino));
});
for (let turns = 0; added().length < Number(wanted ?? 0); turns++) {
  if (turns > 1_000_000) throw new Error("nothing is kept");
  await ray.get(actor.nothing.remote());
}
console.log(JSON.stringify(answer));
await ray.shutdown();
`;
const probe = `import * as ray from "@rayling/core";
import * as cluster from "@rayling/core/cluster";
export const Probe = ray.remote(class Probe {
  async look(values: number[]): Promise<unknown> {
    const inner = ray.remote(() => 1);
    let stack = "";
    try { inner.options({ numCpus: -1 }); } catch (error) { stack = String((error as Error).stack); }
    return {
      values: await ray.get(await ray.put(values)),
      isActor: ray.getRuntimeContext().getActorId() !== null,
      hasCluster: Object.keys(cluster).length > 0,
      frame: /core-[0-9A-F]+\\.js:\\d+:\\d+/.test(stack),
    };
  }
  nothing(): void {}
});
`;
const files = { "main.ts": program, "probe.ts": probe };
const right = { values: [1, 2], isActor: true, hasCluster: true, frame: true };

async function kept(): Promise<string[]> {
  const names = await readdir(folder, { recursive: true });
  return names.filter((name) => name.endsWith(".rayling")).map((name) => join(folder, name));
}

/** The directory is as after a first program. */
const fill = (): Promise<void> => cp(filled, folder, { recursive: true, preserveTimestamps: true });

test("once for all programs and hosts of a version", async () => {
  expect(firstRun.lines).toEqual([right]);
  await fill();
  const keptFiles = await kept();
  expect(keptFiles.map((one) => basename(one)).toSorted()).toEqual([
    expect.stringMatching(/^core-[0-9A-F]+\.js\.driver\.rayling$/),
    expect.stringMatching(/^core-[0-9A-F]+\.js\.thread\.rayling$/),
  ]);
  const before = await Promise.all(keptFiles.map((one) => stat(one)));
  // Others could change what hosts run.
  expect(before.map(({ mode }) => mode & 0o077)).toEqual([0, 0]);
  expect((await programs.run({ files })).lines).toEqual([right]);
  const after = await Promise.all(keptFiles.map((one) => stat(one)));
  const numbers = (all: typeof before): unknown => all.map(({ ino, mtimeMs }) => [ino, mtimeMs]);
  expect(numbers(after)).toEqual(numbers(before));
  expect(await kept()).toEqual(keptFiles);
});

test("handed to later threads in memory, whatever becomes of the file", async () => {
  const later = `import { rm } from "node:fs/promises";
import * as ray from "@rayling/core";
import { Probe } from "./probe.ts";
await ray.init({ numCpus: 8, prewarm: 0 });
const started = async (env: Record<string, string> = {}) => {
  const actor = Probe.options({ isolation: "thread", runtimeEnv: { env } }).remote();
  const answer = await ray.get(actor.look.remote([1, 2]));
  return { answer, loaded: await ray.get(actor.loaded.remote()) };
};
const path = process.argv[2];
const [handed] = [await started(), await rm(path)];
const without = [await started(), await started({ NODE_DISABLE_COMPILE_CACHE: "1" })];
console.log(JSON.stringify([handed, ...without]));
await ray.shutdown();
`;
  const looks = `import { workerData } from "node:worker_threads";
${probe.replace("nothing(): void {}", "loaded() { const { kept, place } = workerData.compiled ?? {}; return { bytes: kept?.code.length > 100_000, path: place?.path }; }")}`;
  await fill();
  const [path = ""] = (await kept()).filter((one) => one.includes(".thread."));
  const { lines } = await programs.run({
    files: { "main.ts": later, "probe.ts": looks },
    args: [path],
  });
  const expected = { answer: right, loaded: { bytes: true, path } };
  expect(lines).toEqual([[expected, expected, expected]]);
  // Nobody had to write it again.
  expect((await kept()).filter((one) => one.includes(".thread."))).toEqual([]);
});

test("by threads that begin with it, whatever link leads there, and no other copy of the package", async () => {
  const copy = join(folder, "copy");
  const core = new URL("../../packages/core/", import.meta.url);
  await cp(new URL("dist", core), join(copy, "dist"), { recursive: true });
  await cp(new URL("package.json", core), join(copy, "package.json"));
  vi.stubEnv("COPY", pathToFileURL(join(copy, "dist/index.js")).href);
  const withCopy = `${probe}
const copy = await import(process.env.COPY ?? "");
if (copy.init === ray.init) throw new Error("it is no other copy");
`;
  const links = [["--preserve-symlinks"], ["--preserve-symlinks-main"]];
  for (const flags of [[], ...sized({ gate: links.slice(0, 1), full: links })]) {
    const isPlain = flags.length === 0;
    for (const isolation of sized({
      gate: isPlain ? ["thread", "process"] : ["thread"],
      full: ["thread", "process"],
    })) {
      const main = program.replace('isolation: "thread"', `isolation: "${isolation}"`);
      const own = { "main.ts": main, "probe.ts": withCopy };
      expect((await programs.run({ files: own, flags })).lines).toEqual([right]);
    }
  }
});

test("at the end of a program that is over soon", async () => {
  const brief = `import * as ray from "@rayling/core";
await ray.init({ prewarm: 0 });
process.stdout.write(JSON.stringify(await ray.get(await ray.put(1))), () => process.exit());
`;
  expect((await programs.run({ files: { "main.ts": brief } })).lines).toEqual([1]);
  expect((await kept()).map((one) => basename(one))).toEqual([
    expect.stringMatching(/\.driver\.rayling$/),
  ]);
});

test("by a host in a process of its own, too", async () => {
  const own = program.replace('isolation: "thread"', 'isolation: "process"');
  const { lines } = await programs.run({ files: { ...files, "main.ts": own }, args: ["2"] });
  expect(lines).toEqual([right]);
  const kinds = (await kept()).map((one) => /[a-z]+(?=\.rayling)/.exec(one)?.[0] ?? one);
  expect(kinds.toSorted((one, other) => one.localeCompare(other))).toEqual(["driver", "process"]);
});

test("anew where V8 refuses what is there", async () => {
  await fill();
  const keptFiles = await kept();
  const wholes = await Promise.all(keptFiles.map((one) => readFile(one)));
  const damaged =
    (from: number, to: number) =>
    (one: Buffer): Buffer =>
      Buffer.from(one).fill(0, Math.floor(one.length * from), Math.floor(one.length * to));
  const kinds = [
    // V8 would run this, and the last.
    damaged(0.2, 0.21),
    (one: Buffer) => one.subarray(0, 1000),
    () => Buffer.alloc(0),
    (one: Buffer) => Buffer.alloc(one.length, 1),
    damaged(0.2, 1),
  ];
  for (const broken of sized({ gate: kinds.slice(0, 2), full: kinds })) {
    await Promise.all(
      keptFiles.map((one, at) => writeFile(one, broken(wholes[at] ?? Buffer.of()))),
    );
    const numbers = await Promise.all(keptFiles.map(async (one) => String((await stat(one)).ino)));
    const { lines, told } = await programs.run({ files, args: ["2", ...numbers] });
    expect(lines).toEqual([right]);
    expect(told).toBe("");
    const sizes = await Promise.all(keptFiles.map(async (one) => (await stat(one)).size));
    expect(Math.min(...sizes)).toBeGreaterThan(1_000_000);
    expect(await kept()).toEqual(keptFiles);
  }
});

test("not where a program has globals of its own, as under a test runner", async () => {
  const realm = `import vm from "node:vm";
import { loadCore } from "./own-globals.mjs";
const { core, context } = await loadCore(process.argv[2]);
try { core.remote(1); } catch (error) {
  context.error = error;
  console.log(JSON.stringify([error instanceof Error, vm.runInContext("error instanceof Error", context), error.stack.includes("core-")]));
}
`;
  const { lines } = await programs.run({
    files: { "main.mjs": realm, "own-globals.mjs": ownGlobals },
    flags: ownGlobalsFlags,
    args: [await coreForNode()],
  });
  expect(lines).toEqual([[false, true, true]]);
  expect(await kept()).toEqual([]);
});

test("not without addons, where the file is a module like any other", async () => {
  const { lines } = await programs.run({ files, flags: ["--no-addons"] });
  expect(lines).toEqual([right]);
  expect(await kept()).toEqual([]);
  // A thread of its own alone: it begins with another file than those of a driver with addons.
  const main = program.replace(
    'const actor = Probe.options({ isolation: "thread" }).remote();',
    `const without = (runtimeEnv) => Probe.options({ isolation: "thread", runtimeEnv }).remote();
const other = without({ env: { NODE_OPTIONS: "--conditions=built --no-addons" } });
console.log(JSON.stringify(await ray.get(other.look.remote(await ray.put([1, 2])))));
const actor = without({ execArgv: ["--no-addons"] });`,
  );
  const both = await programs.run({ files: { ...files, "main.ts": main } });
  expect(both.lines).toEqual([right, right]);
});

/** Loads a file as the package does, and keeps what is compiled: late, early (of a short program) or not. */
const direct = `import { readdirSync, statSync } from "node:fs";
import { enableCompileCache } from "node:module";
import { join } from "node:path";
import v8 from "node:v8";
const [, , source, keeps, setting] = process.argv;
if (setting === "enabled") enableCompileCache(process.env.OPEN);
if (setting === "flags") v8.setFlagsFromString("--no-flush-bytecode");
const { loadKept } = await import(source);
const url = new URL(setting === "bundled" ? "./whole.js" : "./kept/whole.js", import.meta.url).href;
const [twice, where, keep] = loadKept({ url, name: "whole.js", importModule: (place) => import(place) });
const answer = [twice(2), where().endsWith("whole.js"), (await where.later()).three];
if (setting === "flags after") v8.setFlagsFromString("--no-flush-bytecode");
if (keeps !== "never") for (const _ of [1, 2]) keep(keeps === "early");
const files = readdirSync(process.env.KEPT, { recursive: true }).map(String).filter((name) => name.includes("whole.js"));
console.log(JSON.stringify({ answer, files: files.map((name) => [name, statSync(join(process.env.KEPT, name)).ino]) }));
`;
const whole = (
  factor: number,
): string => `const all=(function(__url,__import,loadedCode){"use strict";
const twice=(n)=>n*${factor};const where=Object.assign(()=>__url,{later:()=>__import("./three.js")});
return[twice,where,(isEarly)=>loadedCode?.keep?.(isEarly)]})(import.meta.url,(place)=>import(place));
`;
const source = new URL("../../packages/core/src/shared/compiled/kept-code.ts", import.meta.url)
  .href;

interface Direct {
  readonly factor?: number;
  readonly keeps?: "late" | "early" | "never";
  readonly setting?: "enabled" | "flags" | "flags after" | "bundled";
}

interface Told {
  readonly answer: readonly unknown[];
  /** Names and numbers of the files that are kept. */
  readonly files: readonly (readonly [string, number])[];
}

async function loaded({ factor = 2, keeps = "late", setting }: Direct = {}): Promise<Told> {
  vi.stubEnv("KEPT", folder);
  const three = "export const three = 3;";
  const own = { "run.ts": direct, "whole.js": whole(factor), "three.js": three };
  const args = [source, keeps, ...(setting === undefined ? [] : [setting])];
  const { lines, told } = await programs.run({ files: own, args });
  expect(told).toBe("");
  const [line] = lines as Told[];
  expect(line?.answer).toEqual([2 * factor, true, 3]);
  return line as Told;
}

test("of one text alone, written once", async () => {
  const first = await loaded();
  expect(first.files).toHaveLength(1);
  expect(await loaded()).toEqual(first);
  const edited = await loaded({ factor: 3 });
  expect(edited.files).toHaveLength(1);
  expect(edited.files).not.toEqual(first.files);
});

test("of a program that ends early until a longer one has run", async () => {
  const early = await loaded({ keeps: "early" });
  expect(early.files).toHaveLength(1);
  expect(await loaded({ keeps: "early" })).toEqual(early);
  const late = await loaded();
  expect(late.files).toHaveLength(1);
  expect(late).not.toEqual(early);
  for (const keeps of ["early", "late"] as const) expect(await loaded({ keeps })).toEqual(late);
});

test("of other flags for a day, not by each program in turn", async () => {
  const first = await loaded();
  expect(await loaded({ setting: "flags" })).toEqual(first);
  const twoDaysAgo = Date.now() / 1000 - 2 * 86_400;
  await utimes((await kept())[0] ?? "", twoDaysAgo, twoDaysAgo);
  expect((await loaded({ setting: "flags" })).files).not.toEqual(first.files);
});

describe("in a directory of this user's own, where none is named", () => {
  beforeEach(() => {
    vi.stubEnv("NODE_COMPILE_CACHE", undefined);
    vi.stubEnv("TMPDIR", folder);
  });
  const directory = (): string => join(folder, `rayling-code-${process.getuid?.() ?? "user"}`);

  test("made when something is kept", async () => {
    expect((await loaded({ keeps: "never" })).files).toEqual([]);
    expect(await readdir(folder)).toEqual([]);
    const first = await loaded();
    expect(first.files).toHaveLength(1);
    expect(await loaded()).toEqual(first);
    const [file = ""] = await kept();
    for (const path of [directory(), dirname(file)])
      expect((await stat(path)).mode & 0o777).toBe(0o700);
    await rm(directory(), { recursive: true });
    expect((await loaded()).files).toHaveLength(1);
    expect((await stat(directory())).mode & 0o777).toBe(0o700);
  });

  test("that others can write to, nothing", async () => {
    await mkdir(directory());
    await chmod(directory(), 0o777);
    expect((await loaded()).files).toEqual([]);
  });

  test("whatever cache the program has made of its own", async () => {
    vi.stubEnv("OPEN", join(folder, "open"));
    await loaded({ setting: "enabled" });
    expect((await kept()).map((file) => file.startsWith(`${directory()}/`))).toEqual([true]);
  });

  test("by V8's flags, and not where they change meanwhile", async () => {
    const plain = await loaded();
    const both = await loaded({ setting: "flags" });
    expect(both.files).toHaveLength(2);
    expect(both.files).toEqual(expect.arrayContaining([...plain.files]));
    expect((await loaded({ factor: 3, setting: "flags after" })).files).toEqual(both.files);
  });

  test("without those that are old", async () => {
    await loaded();
    const [file = ""] = await kept();
    const other = join(directory(), "v1.0.0-x64", basename(file));
    await mkdir(dirname(other));
    await writeFile(other, "");
    await utimes(other, 0, 0);
    await rm(file);
    await loaded();
    expect(await kept()).toEqual([file]);
  });
});

test("not where it is slower because it counts what runs", async () => {
  vi.stubEnv("NODE_V8_COVERAGE", join(folder, "coverage"));
  expect((await loaded()).files).toEqual([]);
});

test("a loader that a bundler has taken away from the file says so", async () => {
  await expect(loaded({ setting: "bundled" })).rejects.toThrow(
    /rayling is inside the bundle file:.*, where its workers cannot start/,
  );
});

test("and what others left who were ended while they wrote is removed", async () => {
  await loaded();
  const [file = ""] = await kept();
  const [old, fresh] = [`${file}.1.1`, `${file}.2.2`];
  await writeFile(old, "");
  await writeFile(fresh, "");
  await utimes(old, 0, 0);
  await rm(file);
  await loaded();
  const names = await readdir(dirname(file));
  expect(names).toContain(basename(fresh));
  expect(names).not.toContain(basename(old));
});

test("nowhere without Node's cache of compiled code", async () => {
  vi.stubEnv("NODE_DISABLE_COMPILE_CACHE", "1");
  expect((await programs.run({ files })).lines).toEqual([right]);
  expect((await loaded()).files).toEqual([]);
});
