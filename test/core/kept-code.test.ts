/** Programs and hosts keep what V8 has compiled of the published core, for those of later programs. */
import { mkdtemp, readdir, readFile, rm, stat, utimes, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { basename, dirname, join } from "node:path";
import { afterAll, afterEach, beforeAll, beforeEach, expect, test, vi } from "vitest";
import { coreForNode, ownGlobals, ownGlobalsFlags } from "../fixtures/own-globals.ts";
import { Programs } from "../fixtures/program.ts";

let programs: Programs;
let folder: string;

beforeAll(async () => {
  programs = await Programs.make();
});
afterAll(() => programs.remove());
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

test("once for all programs and hosts of a version", async () => {
  expect((await programs.run({ files, args: ["1"] })).lines).toEqual([right]);
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
  const { lines } = await programs.run({ files: { ...files, "main.ts": own }, args: ["1"] });
  expect(lines).toEqual([right]);
  const kinds = (await kept()).map((one) => /[a-z]+(?=\.rayling)/.exec(one)?.[0] ?? one);
  expect(kinds.toSorted((one, other) => one.localeCompare(other))).toEqual(["driver", "process"]);
});

test("anew where V8 refuses what is there", async () => {
  await programs.run({ files, args: ["1"] });
  const keptFiles = await kept();
  const wholes = await Promise.all(keptFiles.map((one) => readFile(one)));
  const damaged =
    (from: number, to: number) =>
    (one: Buffer): Buffer =>
      Buffer.from(one).fill(0, Math.floor(one.length * from), Math.floor(one.length * to));
  for (const broken of [
    () => Buffer.alloc(0),
    (one: Buffer) => one.subarray(0, 1000),
    (one: Buffer) => Buffer.alloc(one.length, 1),
    // V8 would run these.
    damaged(0.2, 0.21),
    damaged(0.2, 1),
  ]) {
    await Promise.all(
      keptFiles.map((one, at) => writeFile(one, broken(wholes[at] ?? Buffer.of()))),
    );
    const numbers = await Promise.all(keptFiles.map(async (one) => String((await stat(one)).ino)));
    const { lines, told } = await programs.run({ files, args: ["1", ...numbers] });
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
});

/** Loads a file as the package does, and keeps what is compiled. */
const direct = `import { readdirSync, statSync } from "node:fs";
import { join } from "node:path";
const { loadKept } = await import(process.argv[2]);
const [twice, where, keep] = loadKept(new URL("./whole.js", import.meta.url), (place) => import(place));
keep();
keep();
const folder = process.env.NODE_COMPILE_CACHE;
const files = readdirSync(folder, { recursive: true }).map(String).filter((name) => name.includes("whole.js"));
console.log(JSON.stringify({ four: twice(2), where: where().endsWith("whole.js"), later: (await where.later()).three, kept: files.length, ino: files.map((name) => statSync(join(folder, name)).ino)[0] }));
`;
const whole = (
  factor: number,
): string => `const all=(function(__url,__import,loadedCode){"use strict";
const twice=(n)=>n*${factor};const where=Object.assign(()=>__url,{later:()=>__import("./three.js")});
return[twice,where,()=>loadedCode?.keep?.()]})(import.meta.url,(place)=>import(place));
`;
const source = new URL("../../packages/core/src/shared/compiled/kept-code.ts", import.meta.url)
  .href;
const good = { four: 4, where: true, later: 3, kept: 1 };

async function loaded(factor: number): Promise<unknown> {
  const three = "export const three = 3;";
  const own = { "run.ts": direct, "whole.js": whole(factor), "three.js": three };
  const { lines, told } = await programs.run({ files: own, args: [source] });
  expect(told).toBe("");
  return lines[0];
}

test("of one text alone, written once", async () => {
  const first = await loaded(2);
  expect(first).toMatchObject(good);
  expect(await loaded(2)).toEqual(first);
  const edited = await loaded(3);
  expect(edited).toMatchObject({ ...good, four: 6 });
  expect(edited).not.toMatchObject({ ino: (first as { ino: number }).ino });
});

test("and what others left who were ended while they wrote is removed", async () => {
  await loaded(2);
  const [file = ""] = await kept();
  const [old, fresh] = [`${file}.1.1`, `${file}.2.2`];
  await writeFile(old, "");
  await writeFile(fresh, "");
  await utimes(old, 0, 0);
  await rm(file);
  expect(await loaded(2)).toMatchObject({ ...good, kept: 2 });
  const names = await readdir(dirname(file));
  expect(names).toContain(basename(fresh));
  expect(names).not.toContain(basename(old));
});

test("nowhere without Node's cache of compiled code", async () => {
  vi.stubEnv("NODE_DISABLE_COMPILE_CACHE", "1");
  expect((await programs.run({ files })).lines).toEqual([right]);
  expect(await loaded(2)).toMatchObject({ ...good, kept: 0 });
  expect(await kept()).toEqual([]);
});
