/** Packages of code without a cluster: what goes into one, what an agent refuses to take, and what it keeps. */
import { spawnSync } from "node:child_process";
import { createHash } from "node:crypto";
import {
  mkdir,
  mkdtemp,
  readdir,
  readFile,
  readlink,
  realpath,
  rm,
  stat,
  symlink,
  utimes,
  writeFile,
} from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { Readable } from "node:stream";
import { pathToFileURL } from "node:url";
import { gzipSync } from "node:zlib";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { type Channel, channelEndpoint, dialLink, newId } from "@rayling/core/cluster";
import { type Remote, wrap } from "comlink";
import { parseAddress } from "../src/address.ts";
import { CodeCache } from "../src/code/code-cache.ts";
import type { CodePackage } from "../src/code/code-package.ts";
import { DriverCode } from "../src/code/driver-code.ts";
import { CodeSender } from "../src/code/send-code.ts";
import { manifestText } from "../src/code/stream.ts";
import type { AgentControl, CodeControl, HostOrder } from "../src/contract.ts";
import { startAgent } from "../src/index.ts";
import { collect, type Collected, modulesIn } from "../src/collect/collect.ts";
import { type Files, npmProject, pnpmProject, writeFiles } from "./fixtures/users-project.ts";

let folder: string;
beforeEach(async () => {
  folder = await realpath(await mkdtemp(join(tmpdir(), "rayling-code-")));
});
afterEach(() => rm(folder, { recursive: true, force: true }));

/** The bytes of a package by hand, whatever its list says. */
function packed(list: unknown, content = ""): { readonly id: string; readonly bytes: Buffer } {
  const text = Buffer.from(typeof list === "string" ? list : JSON.stringify(list));
  const length = Buffer.alloc(4);
  length.writeUInt32BE(text.length);
  const bytes = Buffer.concat([Buffer.from("RAYCODE1"), length, text, Buffer.from(content)]);
  return { id: createHash("sha256").update(bytes).digest("hex"), bytes };
}

/** A good one with one file. */
const small = (content: string): ReturnType<typeof packed> =>
  packed({ files: [["a.txt", content.length, 0]], links: [] }, content);

describe("an agent", () => {
  const lines: string[] = [];
  let drivers: DriverCode[];
  beforeEach(() => {
    lines.length = 0;
    drivers = [];
  });
  afterEach(() => Promise.all(drivers.map((driver) => driver.end())));

  const cacheOf = (maxBytes = 1_000_000, maxPackageBytes = 1000): CodeCache =>
    new CodeCache({
      directory: join(folder, "cache"),
      maxBytes,
      maxPackageBytes,
      tell: (line) => lines.push(line),
    });
  const driverOf = (cache: CodeCache): DriverCode => {
    const driver = new DriverCode(cache, (line) => lines.push(line));
    drivers.push(driver);
    return driver;
  };
  const send = async (
    driver: DriverCode,
    id: string,
    bytes: Buffer,
    isCompressed = false,
  ): Promise<void> => {
    await driver.openCode(id);
    const sent = isCompressed ? bytes : gzipSync(bytes);
    for (let at = 0; at < sent.length; at += 100) {
      await driver.writeCode(id, sent.subarray(at, at + 100));
    }
    await driver.closeCode(id);
  };
  const listed = async (name: string): Promise<string[]> => {
    const [runtime = ""] = await readdir(join(folder, "cache"));
    return readdir(join(folder, "cache", runtime, name));
  };
  const placeOf = (driver: DriverCode, id: string, directory = ""): string =>
    driver.placeOf({ id, rootUrl: "file:///at/home/", directory, runtime: {} })?.cwd ?? "";

  test("takes a package whole, for its user alone to read, and keeps nothing else", async () => {
    const driver = driverOf(cacheOf());
    const { id, bytes } = packed(
      {
        files: [
          ["bin/run", 3, 1],
          ["node_modules/.store/dep/i.js", 4, 0],
        ],
        links: [["node_modules/dep", ".store/dep"]],
      },
      "abcdefg",
    );
    expect(await driver.hasCode(id)).toBe(false);
    await send(driver, id, bytes);
    expect(await driver.hasCode(id)).toBe(true);
    const place = placeOf(driver, id);
    expect(await readFile(join(place, "node_modules/dep/i.js"), "utf8")).toBe("defg");
    expect(await readlink(join(place, "node_modules/dep"))).toBe(".store/dep");
    expect((await stat(join(place, "bin/run"))).mode & 0o777).toBe(0o500);
    expect((await stat(join(place, "node_modules/dep/i.js"))).mode & 0o777).toBe(0o400);
    expect(placeOf(driver, id, "bin")).toBe(join(place, "bin"));
    expect(placeOf(driver, id, "gone")).toBe(place);
    expect(() => placeOf(driver, id, "../..")).toThrow("is not in its plain form");
    expect(await listed("incoming")).toEqual([]);
    expect(lines).toEqual([`took code ${id.slice(0, 12)}: 2 files, 7 bytes`]);
  });

  const file = (path: unknown, size: unknown = 0, mode: unknown = 0): unknown => ({
    files: [[path, size, mode]],
    links: [],
  });
  const linked = (path: unknown, target: unknown, ...more: unknown[][]): unknown => ({
    files: [["dir/file", 0, 0]],
    links: [...more, [path, target]],
  });
  test.each([
    ["an absolute path", file("/etc/passwd")],
    ["a path that climbs", file("../outside")],
    ["a path that climbs inside", file("a/../../outside")],
    ["a path that ends in dots", file("a/..")],
    ["a path with dots in it", file("./a")],
    ["a path with an empty name", file("a//b")],
    ["a path that ends in a slash", file("a/")],
    ["an empty path", file("")],
    ["a path with backslashes", file("..\\outside")],
    ["a path with a zero", file("a\0b")],
    ["a path that is none", file(5)],
    ["a name that is too long", file("x".repeat(256))],
    ["a path that is too long", file(`${"x".repeat(200)}/`.repeat(6) + "y")],
    ["a path that is too deep", file("x/".repeat(64) + "y")],
    [
      "more folders than any code has",
      {
        files: Array.from({ length: 2000 }, (__, n) => [`${n}/`.repeat(60) + "y", 0, 0]),
        links: [],
      },
    ],
    ["a negative size", file("a", -1)],
    ["a size that is no whole number", file("a", 0.5)],
    ["a size beyond counting", file("a", 2 ** 60)],
    ["a mode of its own", file("a", 0, 0o4755)],
    ["more than one may have", file("a", 1001)],
    [
      "sizes that overflow",
      {
        files: [
          ["a", 2 ** 52, 0],
          ["b", 2 ** 52, 0],
        ],
        links: [],
      },
    ],
    [
      "a file that is there twice",
      {
        files: [
          ["a", 0, 0],
          ["a", 0, 0],
        ],
        links: [],
      },
    ],
    [
      "a file below a file",
      {
        files: [
          ["a", 0, 0],
          ["a/b", 0, 0],
        ],
        links: [],
      },
    ],
    [
      "a file below a link",
      {
        files: [
          ["dir/file", 0, 0],
          ["l/x", 0, 0],
        ],
        links: [["l", "dir"]],
      },
    ],
    ["a link to somewhere absolute", linked("l", "/etc")],
    ["a link that climbs out", linked("l", "../..")],
    ["a link to the root", linked("l", ".")],
    ["a link to nothing", linked("l", "nothing")],
    ["a link through a link", linked("m", "l/file", ["l", "dir"])],
    ["a link that climbs over a link", linked("m", "l/../../x", ["l", "dir"])],
    ["a link to itself", linked("l", "l")],
    ["a link with no target", linked("l", null)],
    ["a list that is none", []],
    ["a list of something else", { files: [], links: [], more: [] }],
    ["a list that is no JSON", "{"],
    ["a list that says nothing", null],
  ])("refuses %s, and nothing is left of it", async (_, list) => {
    const driver = driverOf(cacheOf());
    const { id, bytes } = packed(list);
    await expect(send(driver, id, bytes)).rejects.toThrow("a package of code cannot be used: ");
    expect(await listed("incoming")).toEqual([]);
    expect(await listed("packages")).toEqual([]);
    expect(await driver.hasCode(id)).toBe(false);
  });

  const { id: goodId, bytes: good } = small("content");
  const end = gzipSync(good).length;
  test.each<[string, string, Buffer, RegExp]>([
    [
      "other content than its name says",
      goodId,
      gzipSync(small("Content").bytes),
      /is not what its name/,
    ],
    ["an end that comes too early", goodId, gzipSync(good.subarray(0, -1)), /ends too early/],
    ["an end that does not come", goodId, gzipSync(Buffer.concat([good, good])), /does not end/],
    ["compression that breaks off", goodId, gzipSync(good).subarray(0, end - 9), /no valid gzip/],
    ["no compression", goodId, good, /no valid gzip/],
    ["nothing", goodId, Buffer.alloc(0), /no valid gzip|too early/],
    ["another kind of file", goodId, gzipSync("PK".repeat(50)), /does not begin/],
    ["a list of 4 GB", goodId, gzipSync("RAYCODE1\xff\xff\xff\xff"), /does not begin/],
    [
      "a bomb: little that becomes much",
      goodId,
      gzipSync(Buffer.concat([good, Buffer.alloc(50_000_000)])),
      /does not end/,
    ],
  ])("refuses %s, and nothing is left of it", async (_, id, bytes, message) => {
    const driver = driverOf(cacheOf());
    await expect(send(driver, id, bytes, true)).rejects.toThrow(message);
    expect(await listed("incoming")).toEqual([]);
    expect(await listed("packages")).toEqual([]);
  });

  test("takes names that are hashes alone, and code in order", async () => {
    const driver = driverOf(cacheOf());
    for (const id of ["", "../../etc", "a".repeat(63), "A".repeat(64), undefined, { length: 64 }]) {
      await expect(driver.hasCode(id as never)).rejects.toThrow("its name is not a SHA-256");
      await expect(driver.openCode(id as never)).rejects.toThrow("its name is not a SHA-256");
    }
    await expect(driver.writeCode(goodId, good)).rejects.toThrow("was not begun");
    await expect(driver.closeCode(goodId)).rejects.toThrow("was not begun");
    await driver.openCode(goodId);
    await expect(driver.openCode(goodId)).rejects.toThrow("too many packages are in transfer");
    for (const one of ["1", "2", "3"]) await driver.openCode(one.repeat(64));
    await expect(driver.openCode("4".repeat(64))).rejects.toThrow(
      "too many packages are in transfer",
    );
    expect(() => placeOf(driver, goodId)).toThrow("is not here");
  });

  test("forgets what a driver did not finish that is gone", async () => {
    const driver = driverOf(cacheOf());
    await driver.openCode(goodId);
    await driver.writeCode(goodId, gzipSync(good).subarray(0, 20));
    await driver.end();
    expect(await listed("incoming")).toEqual([]);
    expect(await driverOf(cacheOf()).hasCode(goodId)).toBe(false);
  });

  test("lets no driver write without waiting", async () => {
    const driver = driverOf(cacheOf());
    await driver.openCode(goodId);
    // Of a list that is allowed to be long, and never ends.
    const head = Buffer.from("RAYCODE1\0\xff\xff\xff", "latin1");
    const written = [driver.writeCode(goodId, gzipSync(head))];
    for (let n = 0; n < 20; n++) {
      written.push(
        driver.writeCode(goodId, crypto.getRandomValues(new Uint8Array(60_000)).fill(7)),
      );
      written.push(driver.writeCode(goodId, new Uint8Array(1_000_000)));
    }
    const results = await Promise.allSettled(written);
    expect(results.some(({ status }) => status === "rejected")).toBe(true);
    await driver.dropCode(goodId);
    expect(await listed("incoming")).toEqual([]);
  });

  test("removes what was unused for longest when there is no room, and nothing that is used", async () => {
    const cache = cacheOf(2500);
    const [one, two, three, four] = ["1", "2", "3", "4"].map((text) => small(text.repeat(1000)));
    const keeper = driverOf(cache);
    const ids = [one, two, three, four].map((each) => each?.id ?? "");
    const old = driverOf(cache);
    await send(old, ids[0] ?? "", one?.bytes as Buffer);
    await send(old, ids[1] ?? "", two?.bytes as Buffer);
    const [runtime = ""] = await readdir(join(folder, "cache"));
    for (const [index, id] of ids.slice(0, 2).entries()) {
      const when = new Date(2020, 0, 1 + index);
      await utimes(join(folder, "cache", runtime, "packages", id, "manifest.json"), when, when);
    }
    // The older one is in use again, the other is not.
    await old.end();
    expect(await keeper.hasCode(ids[0] ?? "")).toBe(true);
    await send(keeper, ids[2] ?? "", three?.bytes as Buffer);
    expect(new Set(await listed("packages"))).toEqual(new Set([ids[0], ids[2]]));
    expect(lines).toContain(`code ${ids[1]?.slice(0, 12)} (1000 bytes) made room`);
    // Both are in use: there is no room for a third.
    await expect(send(keeper, ids[3] ?? "", four?.bytes as Buffer)).rejects.toThrow(
      /the code cache .* is full: running drivers use 2000 bytes of 2500, and 1000 more are needed/,
    );
    expect(await listed("incoming")).toEqual([]);
    await keeper.end();
    await send(driverOf(cache), ids[3] ?? "", four?.bytes as Buffer);
    expect(new Set(await listed("packages"))).toEqual(new Set([ids[2], ids[3]]));
  });

  test("removes nothing that another agent with the same directory uses", async () => {
    const other = driverOf(cacheOf(1500));
    const [one, two] = [small("1".repeat(1000)), small("2".repeat(1000))];
    await send(other, one.id, one.bytes);
    const own = driverOf(cacheOf(1500));
    await expect(send(own, two.id, two.bytes)).rejects.toThrow("is full");
    await other.end();
    await send(own, two.id, two.bytes);
    expect(await other.hasCode(one.id)).toBe(false);
  });

  test("is sent no more packages at the same time than it takes", async () => {
    const driver = driverOf(cacheOf());
    const sender = new CodeSender(
      Promise.resolve(driver as unknown as Remote<CodeControl>),
      new Promise(() => undefined),
    );
    const sent = [...Array(9).keys()].map((number) => small(String(number)));
    const brought = sent.map(({ id, bytes }) => {
      const given: Pick<CodePackage, "code" | "portions"> = {
        code: async () => ({ id, rootUrl: "file:///at/home/", directory: "", runtime: {} }),
        portions: async () => Readable.from([gzipSync(bytes)]),
      };
      return sender.bring(given as CodePackage);
    });
    expect((await Promise.all(brought)).map(({ id }) => id)).toEqual(sent.map(({ id }) => id));
    expect((await listed("packages")).toSorted()).toEqual(sent.map(({ id }) => id).toSorted());
    // Who does not wait is refused.
    const more = [...Array(9).keys()].map((number) => small(`more ${number}`));
    const opened = await Promise.allSettled(more.map(({ id }) => driver.openCode(id)));
    expect(opened.filter(({ status }) => status === "fulfilled")).toHaveLength(4);
  });

  test("uses nothing that it cannot mark, and counts no use of it", async () => {
    const driver = driverOf(cacheOf(1500));
    const [one, two] = [small("1".repeat(1000)), small("2".repeat(1000))];
    await send(driver, one.id, one.bytes);
    await driver.end();
    const [runtime = ""] = await readdir(join(folder, "cache"));
    const base = join(folder, "cache", runtime);
    const cache = cacheOf(1500);
    await cache.open();
    await rm(join(base, "uses"), { recursive: true });
    await writeFile(join(base, "uses"), "a file");
    await expect(driverOf(cache).hasCode(one.id)).rejects.toThrow(
      /code cache .* cannot be written/,
    );
    await rm(join(base, "uses"));
    await mkdir(join(base, "uses"));
    await writeFile(join(base, "packages", "notes.txt"), "somebody else's");
    await send(driverOf(cache), two.id, two.bytes);
    expect((await listed("packages")).toSorted()).toEqual([two.id, "notes.txt"].toSorted());
  });

  test("takes more than its cache holds from nobody", async () => {
    const driver = driverOf(cacheOf(500, 1000));
    const { id, bytes } = small("x".repeat(600));
    await expect(send(driver, id, bytes)).rejects.toThrow(
      "it has 600 bytes, and at most 500 are allowed",
    );
  });

  test("removes what processes left that are gone, at its start, and leaves alone what others write", async () => {
    const cache = cacheOf();
    await cache.open();
    const [runtime = ""] = await readdir(join(folder, "cache"));
    const base = join(folder, "cache", runtime);
    const { id, bytes } = small("used");
    await send(driverOf(cache), id, bytes);
    const own = (await listed("uses"))[0] ?? "";
    const here = own.split("-")[1] ?? "";
    const gone = 2 ** 22 + 7;
    await mkdir(join(base, "incoming", `${gone}-${here}-x-1`, "files"), { recursive: true });
    await mkdir(join(base, "incoming", `${process.pid}-${here}-before-1`));
    await mkdir(join(base, "incoming", `${process.ppid}-${here}-x-1`));
    await writeFile(join(base, "uses", `${goodId}.${gone}-${here}-x`), "");
    // In a container its number may be another's, or nobody's: its mark is renewed while it lives.
    for (const [name, days] of [
      ["fresh", 0.9],
      ["forgotten", 1.1],
    ] as const) {
      const mark = join(base, "uses", `${goodId}.${gone}-elsewhere-${name}`);
      const when = new Date(Date.now() - days * 86_400_000);
      await writeFile(mark, "");
      await utimes(mark, when, when);
    }
    await cacheOf().open();
    expect(await listed("incoming")).toEqual([`${process.ppid}-${here}-x-1`]);
    expect((await listed("uses")).toSorted()).toEqual(
      [own, `${goodId}.${gone}-elsewhere-fresh`].toSorted(),
    );
  });

  test.each([true, false])(
    "waits for who is about to take a package away, and looks then (taken: %s)",
    async (isTaken) => {
      const { id, bytes } = small("wanted");
      await send(driverOf(cacheOf()), id, bytes);
      const [runtime = ""] = await readdir(join(folder, "cache"));
      const base = join(folder, "cache", runtime);
      const here = (await listed("uses"))[0]?.split("-")[1] ?? "";
      // Another agent, which lives.
      const mark = join(base, "evicting", `${id}.${process.ppid}-${here}-x-1`);
      await writeFile(mark, "");
      const asking = cacheOf();
      let isAnswered = false;
      const asked = asking.use(id).finally(() => (isAnswered = true));
      await expect.poll(() => listed("uses")).toHaveLength(2);
      // Long enough for an answer that waits for nobody.
      for (let turn = 0; turn < 50; turn++) await stat(mark);
      expect(isAnswered).toBe(false);
      if (isTaken) await rm(join(base, "packages", id), { recursive: true });
      await rm(mark);
      expect(await asked).toBe(isTaken ? undefined : join(base, "packages", id, "files"));
      await asking.close();
    },
  );

  test("does not wait for ever for who is about to take a package away", async () => {
    const { id, bytes } = small("wanted");
    await send(driverOf(cacheOf()), id, bytes);
    const [runtime = ""] = await readdir(join(folder, "cache"));
    const here = (await listed("uses"))[0]?.split("-")[1] ?? "";
    // It lives, but has not got on for longer than anybody waits.
    const mark = join(folder, "cache", runtime, "evicting", `${id}.${process.ppid}-${here}-x-1`);
    await writeFile(mark, "");
    const before = new Date(Date.now() - 61_000);
    await utimes(mark, before, before);
    const asking = cacheOf();
    await expect(asking.use(id)).rejects.toThrow(
      `code ${id.slice(0, 12)} is marked for removal for over 60 s: if no agent is removing it, delete ${mark}`,
    );
    expect(await listed("uses")).toHaveLength(1);
    await rm(mark);
    expect(await asking.use(id)).toBeDefined();
    await asking.close();
  });

  test.each([".", "packages", "uses", "incoming", "package.json", "node_modules"])(
    "takes code again after somebody has cleared its directory (%s)",
    async (part) => {
      const cache = cacheOf();
      const [driver, later] = [driverOf(cache), driverOf(cache)];
      const [one, two] = [small("1"), small("2")];
      await send(driver, one.id, one.bytes);
      const [runtime = ""] = await readdir(join(folder, "cache"));
      await rm(join(folder, "cache", runtime, part), { recursive: true });
      const isLost = part === "." || part === "packages";
      expect(await later.hasCode(one.id)).toBe(!isLost);
      expect(await driver.hasCode(one.id)).toBe(!isLost);
      await send(later, two.id, two.bytes);
      expect(await readFile(join(placeOf(later, two.id), "a.txt"), "utf8")).toBe("2");
      if (!isLost) return;
      expect(placeOf(driver, one.id)).toBe("");
      await send(driver, one.id, one.bytes);
      expect(await readFile(join(placeOf(driver, one.id), "a.txt"), "utf8")).toBe("1");
      expect((await listed("packages")).toSorted()).toEqual([one.id, two.id].toSorted());
    },
  );

  test("lends a package without what hosts left there, once none uses it, and without what they replaced", async () => {
    const [one, two] = [cacheOf(), cacheOf()];
    const [driver, elsewhere] = [driverOf(one), driverOf(two)];
    const content = { files: [["sub/a.txt", 1, 0]], links: [["l", "sub/a.txt"]] };
    const { id, bytes } = packed(content, "1");
    await send(driver, id, bytes);
    const place = placeOf(driver, id);
    await mkdir(join(place, "node_modules/dep"), { recursive: true });
    await writeFile(join(place, "sub/left.txt"), "x");
    const names = async (): Promise<string[]> => (await readdir(place)).toSorted();
    // Its hosts run, and need what they wrote.
    const later = driverOf(one);
    for (const other of [later, elsewhere]) expect(await other.hasCode(id)).toBe(true);
    await driver.end();
    await later.end();
    expect(await driverOf(one).hasCode(id)).toBe(true);
    expect(await names()).toEqual(["l", "node_modules", "sub"]);
    await Promise.all(drivers.map((each) => each.end()));
    const next = driverOf(two);
    expect(await next.hasCode(id)).toBe(true);
    expect([await names(), await readdir(join(place, "sub"))]).toEqual([["l", "sub"], ["a.txt"]]);
    expect(lines.at(-1)).toBe(
      `code ${id.slice(0, 12)}: what hosts left in its folder was removed (node_modules, sub/left.txt)`,
    );
    await rm(join(place, "l"));
    await symlink("/etc/hosts", join(place, "l"));
    await next.end();
    expect(await driverOf(two).hasCode(id)).toBe(false);
    expect(lines.at(-2)).toMatch(/cannot be read: .* l was replaced$/);
  });

  test.each(["manifest.json", "files", "bytes"])(
    "takes a package again of which a cleaner of old files has removed %s",
    async (part) => {
      const cache = cacheOf();
      const [driver, code] = [driverOf(cache), small("1")];
      await send(driver, code.id, code.bytes);
      const [runtime = ""] = await readdir(join(folder, "cache"));
      const place = join(folder, "cache", runtime, "packages", code.id);
      await rm(join(place, part), { recursive: true });
      expect(placeOf(driver, code.id)).toBe("");
      expect(await driver.hasCode(code.id)).toBe(false);
      await send(driver, code.id, code.bytes);
      expect(await driver.hasCode(code.id)).toBe(true);
      expect(await readFile(join(placeOf(driver, code.id), "a.txt"), "utf8")).toBe("1");
      expect((await readdir(place)).toSorted()).toEqual(["bytes", "files", "manifest.json"]);
    },
  );

  test("ends for a driver, and altogether, where the disk takes no change any more", async () => {
    const cache = cacheOf();
    const [driver, other] = [driverOf(cache), driverOf(cache)];
    const code = small("1");
    await send(driver, code.id, code.bytes);
    await other.hasCode(code.id);
    const [runtime = ""] = await readdir(join(folder, "cache"));
    const uses = join(folder, "cache", runtime, "uses");
    await rm(uses, { recursive: true });
    await writeFile(uses, "a file");
    await driver.end();
    await other.end();
    expect(lines.at(-1)).toMatch(/^code [0-9a-f]{12} stays marked as in use: the code cache /);
    await cache.close();
  });

  test("says when its directory cannot be used", async () => {
    await writeFile(join(folder, "cache"), "a file");
    await expect(driverOf(cacheOf()).hasCode(goodId)).rejects.toThrow(
      /code cache .* cannot be written/,
    );
    const cache = new CodeCache({
      directory: join(folder, "node_modules", "cache"),
      maxBytes: 1,
      maxPackageBytes: 1,
      tell: () => undefined,
    });
    await expect(cache.open()).rejects.toThrow("in a node_modules folder");
  });
});

describe("over a connection, an agent", () => {
  test("outlives a driver whose code it cannot release", async () => {
    const lines: string[] = [];
    const isGone = Promise.withResolvers<void>();
    const onEvent = (line: string): void => {
      lines.push(line);
      if (line.includes("stays marked as in use")) isGone.resolve();
    };
    const agent = await startAgent({ codeCache: join(folder, "cache"), onEvent });
    const code = small("1");
    const [channel, control] = await dialled(agent.address);
    await control.openCode(code.id);
    await control.writeCode(code.id, gzipSync(code.bytes));
    await control.closeCode(code.id);
    const [runtime = ""] = await readdir(join(folder, "cache"));
    const uses = join(folder, "cache", runtime, "uses");
    await rm(uses, { recursive: true });
    await writeFile(uses, "a file");
    channel.close({ kind: "shutdown", message: "it leaves" });
    await isGone.promise;
    const [next, control2] = await dialled(agent.address);
    expect(await control2.ping()).toBe(undefined);
    next.close({ kind: "shutdown", message: "it leaves" });
    await agent.close();
  });

  const dialled = async (address: string): Promise<[Channel, Remote<AgentControl>]> => {
    const { place, token } = parseAddress(address);
    const channel = await dialLink(
      { place, token },
      { peerId: newId("driver"), wayId: undefined },
      { peerId: "the agent", explain: () => new Promise(() => undefined) },
    );
    return [channel, wrap<AgentControl>(channelEndpoint(channel))];
  };
  const order: Omit<HostOrder, "code"> = {
    identity: {
      hostId: "host-x",
      nodeId: "node-x",
      nodeLabels: {},
      driverId: "driver-x",
      hasEngine: false,
      jobId: "job-x",
      namespace: "x",
      network: {},
      program: { argv: [], title: "", isTest: false, usesFilePromises: false },
      inside: { stuckWarningMs: 0, logToDriver: false, taskEvents: false },
    },
    runtimeEnv: undefined,
    moduleUrl: undefined,
    isDevelopment: false,
    publicHost: "127.0.0.1",
  };

  test("takes code from who has its token, starts nothing on code that was not brought, and outlives what is wrong", async () => {
    const agent = await startAgent({ codeCache: join(folder, "cache"), maxCodeBytes: 1000 });
    try {
      await expect(dialled(agent.address.replace(/\/\/.*@/, "//guessed@"))).rejects.toThrow(
        "token",
      );
      const [channel, control] = await dialled(agent.address);
      const hostile = packed({ files: [["../outside", 1, 0]], links: [] }, "x");
      await control.openCode(hostile.id);
      await control.writeCode(hostile.id, gzipSync(hostile.bytes));
      await expect(control.closeCode(hostile.id)).rejects.toThrow("is not in its plain form");
      const { id, bytes } = small("content");
      for (const wrong of [null, 5, "text", {}, [], new Uint8Array(0)]) {
        await control.openCode(id);
        const written = control.writeCode(id, wrong as never).then(() => control.closeCode(id));
        await expect(written).rejects.toThrow();
        await control.dropCode(id);
      }
      const code = { id, rootUrl: "file:///at/home/", directory: "", runtime: {} };
      await expect(control.launch({ ...order, code })).rejects.toThrow(
        /code [0-9a-f]+ is not here/,
      );
      await control.openCode(id);
      await control.writeCode(id, gzipSync(bytes));
      await control.closeCode(id);
      // Another driver may use it when it asks by its name, and not before.
      const [otherChannel, other] = await dialled(agent.address);
      await expect(other.launch({ ...order, code })).rejects.toThrow("is not here");
      expect(await other.hasCode(id)).toBe(true);
      await expect(
        other.launch({ ...order, code: { ...code, directory: "../.." } }),
      ).rejects.toThrow("is not in its plain form");
      expect(agent.hostCount).toBe(0);
      const { maxPackageBytes, platform } = (await other.describe()).code;
      expect([maxPackageBytes, platform]).toEqual([1000, `${process.platform}-${process.arch}`]);
      for (const one of [channel, otherChannel]) one.close({ kind: "shutdown", message: "over" });
    } finally {
      await agent.close();
    }
  });
});

describe("what is collected", () => {
  const paths = ({ manifest }: Collected): string[] => manifest.files.map(([path]) => path);
  const of = (
    modules: readonly string[],
    options: { workingDir?: string | true; excludes?: string[]; root?: string } = {},
  ): Promise<Collected> => {
    const { workingDir = true, excludes = [], root = folder } = options;
    return collect({
      workingDir: workingDir === true ? true : join(folder, workingDir),
      excludes,
      modules: modules.map((path) => pathToFileURL(join(folder, path)).href),
      currentDirectory: root,
    });
  };
  const reached = [
    "node_modules/cjs-dep/main.js",
    "node_modules/cjs-dep/package.json",
    "node_modules/cjs-dep/part.js",
    "node_modules/deep-dep/i.js",
    "node_modules/deep-dep/package.json",
    "node_modules/esm-dep/lib/index.js",
    "node_modules/esm-dep/package.json",
    "package.json",
    "src/data.txt",
    "src/greeter.ts",
    "src/helper.ts",
  ];

  test("is read by a thread for a program that is no file, too", async () => {
    await npmProject(folder, "");
    const thread = new URL("../src/collect/thread.ts", import.meta.url).href;
    const modules = [pathToFileURL(join(folder, "src/greeter.ts")).href];
    const request = { workingDir: true, excludes: [], modules, currentDirectory: folder };
    const code = `import { collectInThread } from ${JSON.stringify(thread)};
      // The thread holds no process, as it is the driver that waits for it.
      const hold = setInterval(() => undefined, 2 ** 30);
      console.log((await collectInThread(${JSON.stringify(request)})).root);
      clearInterval(hold);`;
    const flags = ["--no-warnings", "--input-type=module", "-e", code];
    const { stdout, stderr } = spawnSync(process.execPath, flags, { encoding: "utf8" });
    expect(stdout.trim(), stderr).toBe(folder);
  });

  test("is what a module reaches, with whole npm packages and what these depend on, and no runtime", async () => {
    await npmProject(folder, "");
    const collected = await of(["src/greeter.ts"]);
    expect(collected.root).toBe(folder);
    expect(paths(collected)).toEqual(reached);
    expect(collected.manifest.links).toEqual([]);
    const has = modulesIn(collected);
    expect(has(pathToFileURL(join(folder, "src/greeter.ts")).href)).toBe(true);
    expect(has(pathToFileURL(join(folder, "src/main.ts")).href)).toBe(false);
  });

  test("keeps the links that pnpm makes", async () => {
    await pnpmProject(folder, "");
    const { manifest } = await of(["src/greeter.ts"]);
    expect(manifest.links).toEqual([
      [
        "node_modules/.pnpm/cjs-dep@1.0.0/node_modules/deep-dep",
        "../../deep-dep@1.0.0/node_modules/deep-dep",
      ],
      ["node_modules/cjs-dep", ".pnpm/cjs-dep@1.0.0/node_modules/cjs-dep"],
      ["node_modules/esm-dep", ".pnpm/esm-dep@1.0.0/node_modules/esm-dep"],
    ]);
    expect(manifest.files.map(([path]) => path)).toContain(
      "node_modules/.pnpm/deep-dep@1.0.0/node_modules/deep-dep/i.js",
    );
  });

  test("has the same name wherever the project lies, and another when a file changes", async () => {
    const texts: string[] = [];
    for (const name of ["one", "two"]) {
      await npmProject(join(folder, name), "");
      texts.push(manifestText((await of([`${name}/src/greeter.ts`])).manifest).toString());
    }
    expect(texts[1]).toBe(texts[0]);
    await writeFile(join(folder, "two/src/helper.ts"), "export const shout = String;\n");
    const changed = manifestText((await of(["two/src/greeter.ts"])).manifest).toString();
    expect(changed).not.toBe(texts[0]);
  });

  test("leaves out what is excluded, seen from the folder or the current directory", async () => {
    await npmProject(folder, "");
    const excludes = ["*.txt", "/node_modules/cjs-dep/part.js", "!src/helper.ts"];
    expect(paths(await of(["src/greeter.ts"], { excludes }))).toEqual(
      reached.filter((path) => !/data\.txt|part\.js/.test(path)),
    );
    const seenFromSrc = await of(["src/greeter.ts"], {
      excludes: ["/data.txt"],
      root: join(folder, "src"),
    });
    expect(paths(seenFromSrc)).toEqual(reached.filter((path) => path !== "src/data.txt"));
    expect(seenFromSrc.directory).toBe("src");
  });

  test("follows every way to name a module that can be read", async () => {
    await writeFiles(folder, {
      "package.json": JSON.stringify({
        name: "own",
        type: "module",
        exports: { "./self": "./self.ts" },
        imports: {
          "#inner": "./inner.ts",
          "#kind": { require: "./kind.cjs", import: "./kind.mjs" },
        },
      }),
      "main.ts": `import type { Erased } from "./erased.ts";
import { unused } from "./unused.ts";
import "#inner";
import "#kind";
import "own/self";
import settings from "./settings.json" with { type: "json" };
import { createRequire } from "node:module";
import missing from "not-installed";
export * from "./exported.mts";
const worker = new Worker(new URL("./worker.ts", import.meta.url));
const asset = new URL('./table.bin', import.meta.url);
const lazy = () => import("./lazy.ts");
const old = import.meta.resolve("./resolved.cjs");
`,
      "erased.ts": "export type Erased = string;\n",
      "unused.ts": "export const unused = 1;\n",
      "inner.ts": "",
      "kind.cjs": "",
      "kind.mjs": "",
      "self.ts": "",
      "settings.json": "{}",
      "exported.mts": "",
      "worker.ts": `import "./worker-part.ts";\n`,
      "worker-part.ts": "",
      "table.bin": "x",
      "lazy.ts": "",
      "resolved.cjs": `require("./required"); require.resolve("./asked.json"); try { require("./not-there") } catch {}\n`,
      "required.js": "",
      "asked.json": "{}",
      "not-reached.ts": "",
    });
    expect(paths(await of(["main.ts"]))).toEqual(
      [
        "asked.json",
        "exported.mts",
        "inner.ts",
        "kind.mjs",
        "lazy.ts",
        "main.ts",
        "package.json",
        "required.js",
        "resolved.cjs",
        "self.ts",
        "settings.json",
        "table.bin",
        "unused.ts",
        "worker-part.ts",
        "worker.ts",
      ].toSorted(),
    );
  });

  test("goes through broken modules as far as they can be read", async () => {
    await writeFiles(folder, {
      "package.json": "{}",
      "main.ts": `import "./broken.ts";\nimport "./whole.ts";\n`,
      "broken.ts": "const = ;\n",
      "whole.ts": "",
    });
    expect(paths(await of(["main.ts"]))).toEqual([
      "broken.ts",
      "main.ts",
      "package.json",
      "whole.ts",
    ]);
  });

  test("takes packages of a workspace as part of the user's own code", async () => {
    await writeFiles(folder, {
      "app/package.json": JSON.stringify({ name: "app", type: "module" }),
      "app/main.ts": `import "lib";\n`,
      "lib/package.json": JSON.stringify({
        name: "lib",
        type: "module",
        exports: "./src/index.ts",
      }),
      "lib/src/index.ts": `import "dep";\nimport "./part.ts";\n`,
      "lib/src/part.ts": "",
      "lib/test/huge.bin": "x",
      "lib/node_modules/dep/package.json": JSON.stringify({ name: "dep" }),
      "lib/node_modules/dep/index.js": "",
    });
    await mkdir(join(folder, "app/node_modules"));
    await symlink("../../lib", join(folder, "app/node_modules/lib"));
    const collected = await of(["app/main.ts"], { root: join(folder, "app") });
    expect(paths(collected)).toEqual([
      "app/main.ts",
      "app/package.json",
      "lib/node_modules/dep/index.js",
      "lib/node_modules/dep/package.json",
      "lib/package.json",
      "lib/src/index.ts",
      "lib/src/part.ts",
    ]);
    expect(collected.manifest.links).toEqual([["app/node_modules/lib", "../../lib"]]);
    expect(collected.directory).toBe("app");
  });

  test("of a folder is all of it, with the dependencies of its package.json", async () => {
    const more: Files = {
      "package.json": JSON.stringify({
        name: "own",
        type: "module",
        dependencies: { plugin: "*" },
      }),
      "node_modules/plugin/package.json": JSON.stringify({
        name: "plugin",
        optionalDependencies: { fast: "*", "not-there": "*" },
        dependencies: { "@types/node": "*" },
      }),
      "node_modules/plugin/index.js": "",
      "node_modules/@types/node/index.d.ts": "",
      "node_modules/fast/package.json": JSON.stringify({ name: "fast" }),
      "node_modules/fast/fast.node": "not ours to run",
      "node_modules/dev-only/package.json": "{}",
      "docs/read.me": "x",
    };
    await npmProject(folder, "", more);
    await symlink("docs/read.me", join(folder, "inside"));
    await symlink("nowhere", join(folder, "dangling"));
    const collected = await of(["src/greeter.ts"], { workingDir: "." });
    expect(paths(collected)).toEqual(
      [
        ...reached,
        "docs/read.me",
        "node_modules/fast/fast.node",
        "node_modules/fast/package.json",
        "node_modules/plugin/index.js",
        "node_modules/plugin/package.json",
        "src/main.ts",
      ].toSorted(),
    );
    expect(collected.manifest.links).toEqual([["inside", "docs/read.me"]]);
    // What is optional may be for another machine.
    expect(collected.addons).toEqual([]);
  });

  test("of a folder heeds a .gitignore that takes back what an outer one ignores, as git does", async () => {
    await writeFiles(folder, {
      ".gitignore": "*.json\n/closed/\n",
      "a.json": "",
      "sub/.gitignore": "!config.json\n",
      "sub/config.json": "",
      "sub/other.json": "",
      "sub/deep/.gitignore": "config.json\n",
      "sub/deep/config.json": "",
      // What is ignored as a folder stays ignored.
      "closed/.gitignore": "!config.json\n",
      "closed/config.json": "",
    });
    const sent = paths(await of([], { workingDir: "." })).toSorted();
    expect(sent).toEqual([
      ".gitignore",
      "sub/.gitignore",
      "sub/config.json",
      "sub/deep/.gitignore",
    ]);
    if (spawnSync("git", ["init", "-q"], { cwd: folder }).status !== 0) return;
    const flags = ["ls-files", "-co", "--exclude-standard"];
    const { stdout } = spawnSync("git", flags, { cwd: folder, encoding: "utf8" });
    expect(sent).toEqual(stdout.trim().split("\n").toSorted());
  });

  test("knows for which machines native code is", async () => {
    const file = (bytes: readonly number[], at: number): string => {
      const made = Buffer.alloc(256);
      Buffer.from(bytes).copy(made);
      made.writeUInt16LE(at, 18);
      return made.toString("latin1");
    };
    await npmProject(folder, "");
    const dep = join(folder, "node_modules/esm-dep/prebuilds");
    await mkdir(dep);
    await writeFile(join(dep, "a.node"), file([0x7f, 0x45, 0x4c, 0x46], 62), "latin1");
    await writeFile(join(dep, "b.node"), file([0x7f, 0x45, 0x4c, 0x46], 183), "latin1");
    await writeFile(
      join(dep, "c.node"),
      file([0xcf, 0xfa, 0xed, 0xfe, 0x0c, 0, 0, 1], 0),
      "latin1",
    );
    await writeFile(join(dep, "d.node"), "text");
    const { addons } = await of(["src/greeter.ts"]);
    expect(addons).toEqual([
      { name: "esm-dep", targets: ["linux-x64", "linux-arm64", "darwin-arm64"] },
    ]);
  });

  test("says which folder is not there, or is empty", async () => {
    await expect(of([], { workingDir: "gone" })).rejects.toThrow(
      `the folder ${join(folder, "gone")} does not exist`,
    );
    await mkdir(join(folder, "empty"));
    await expect(of([], { workingDir: "empty" })).rejects.toThrow("there is no file in it");
  });
});
