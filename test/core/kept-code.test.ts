/** Hosts keep what they have compiled of the published core, for hosts of later programs. */
import { mkdtemp, readdir, readFile, rm, stat, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, afterEach, beforeAll, beforeEach, expect, test, vi } from "vitest";
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

/** With the number of a file it waits until a host has kept another one. */
const program = `import { readdirSync, statSync } from "node:fs";
import { join } from "node:path";
import * as ray from "@rayling/core";
import { Probe } from "./probe.ts";
await ray.init({ numCpus: 1, prewarm: 0 });
const actor = Probe.options({ isolation: "thread" }).remote();
const answer = await ray.get(actor.look.remote(await ray.put([1, 2])));
const folder = process.env.NODE_COMPILE_CACHE ?? ".";
const [, , before] = process.argv;
const isThere = () => readdirSync(folder, { recursive: true }).some((name) => {
  const isKept = String(name).endsWith(".rayling");
  return isKept && String(statSync(join(folder, String(name))).ino) !== before;
});
for (let turns = 0; before !== undefined && !isThere(); turns++) {
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
  return names.filter((name) => name.includes(".rayling")).map((name) => join(folder, name));
}

test("after the first call, once for all hosts of a version", async () => {
  expect((await programs.run({ files, args: ["none"] })).lines).toEqual([right]);
  const [file = "", ...others] = await kept();
  expect(others).toEqual([]);
  expect(file).toMatch(/core-[0-9A-F]+\.js\.rayling$/);
  // Others could change what hosts run.
  expect((await stat(file)).mode & 0o077).toBe(0);
  const { mtimeMs, ino } = await stat(file);
  expect((await programs.run({ files })).lines).toEqual([right]);
  expect(await stat(file)).toMatchObject({ mtimeMs, ino });
});

test("anew where V8 refuses what is there", async () => {
  await programs.run({ files, args: ["none"] });
  const [file = ""] = await kept();
  const whole = await readFile(file);
  const damaged = (from: number, to: number): Buffer => Buffer.from(whole).fill(0, from, to);
  for (const broken of [
    Buffer.alloc(0),
    whole.subarray(0, 1000),
    Buffer.alloc(whole.length, 1),
    // V8 would run these.
    damaged(409_600, 413_696),
    damaged(Math.floor(whole.length / 5), whole.length),
  ]) {
    await writeFile(file, broken);
    const { ino } = await stat(file);
    const { lines, told } = await programs.run({ files, args: [String(ino)] });
    expect(lines).toEqual([right]);
    expect(told).toBe("");
    expect((await readFile(file)).length).toBeGreaterThan(whole.length / 2);
    expect(await kept()).toEqual([file]);
  }
});

/** Loads a file as a host does, and keeps what is compiled. */
const direct = `import { readdirSync, statSync } from "node:fs";
import { join } from "node:path";
const { KeptCode } = await import(process.argv[2]);
const file = new URL("./whole.js", import.meta.url);
if (process.argv.includes("preloaded")) await import(file.href);
const code = new KeptCode(file);
const { twice, where } = await code.load();
code.keep();
code.keep();
const folder = process.env.NODE_COMPILE_CACHE;
const files = readdirSync(folder, { recursive: true }).map(String).filter((name) => name.includes("whole.js"));
const isSame = (await import("./whole.js")).twice === twice;
console.log(JSON.stringify({ four: twice(2), isSame, where: where().endsWith("whole.js"), later: (await where.later()).three, kept: files.length, ino: files.map((name) => statSync(join(folder, name)).ino)[0] }));
`;
const whole = (
  factor: number,
): string => `const{twice:e0,where:e1}=(function(__url,__import){"use strict";
const twice=(n)=>n*${factor};const where=Object.assign(()=>__url,{later:()=>__import("./three.js")});
return{twice,where}})(import.meta.url,(place)=>import(place));
export{e0 as twice,e1 as where};
`;
const source = new URL("../../packages/core/src/host/code/kept-code.ts", import.meta.url).href;
const good = { four: 4, isSame: true, where: true, later: 3, kept: 1 };

async function loaded(factor: number, ...args: readonly string[]): Promise<unknown> {
  const three = "export const three = 3;";
  const own = { "run.ts": direct, "whole.js": whole(factor), "three.js": three };
  const { lines, told } = await programs.run({ files: own, args: [source, ...args] });
  expect(told).toBe("");
  return lines[0];
}

test("of one text alone, written once, for all who import the file", async () => {
  const first = await loaded(2);
  expect(first).toMatchObject(good);
  expect(await loaded(2)).toEqual(first);
  const edited = await loaded(3);
  expect(edited).toMatchObject({ ...good, four: 6 });
  expect(edited).not.toMatchObject({ ino: (first as { ino: number }).ino });
});

test("not of a text that something else had loaded before", async () => {
  expect(await loaded(2, "preloaded")).toMatchObject({ ...good, kept: 0 });
  expect(await loaded(2)).toMatchObject(good);
});

test("nowhere without Node's cache of compiled code", async () => {
  vi.stubEnv("NODE_DISABLE_COMPILE_CACHE", "1");
  expect((await programs.run({ files })).lines).toEqual([right]);
  expect(await loaded(2)).toMatchObject({ ...good, kept: 0 });
  expect(await kept()).toEqual([]);
});
