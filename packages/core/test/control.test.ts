/** The control socket from inside: who is let in, what may be asked, and that nothing is left of who asked. */
import { mkdir, mkdtemp, readdir, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, test, vi } from "vitest";
import { init, shutdown } from "../src/api/session.ts";
import { findDrivers, type DriverClient } from "../src/runtime/control/control-client.ts";
import {
  controlDirectory,
  type FoundRecord,
  readRecords,
} from "../src/runtime/control/control-files.ts";
import { LogLines } from "../src/runtime/observe/kept-log-lines.ts";
import { type Channel } from "../src/transport/channel.ts";
import { dial } from "../src/transport/link/dial.ts";
import { eventually } from "../../../test/fixtures/eventually.ts";

describe("lines that are kept", () => {
  const texts = (lines: LogLines, from = 0): readonly string[] =>
    lines.from(from).lines.map(({ text }) => text);

  test("are numbered, and bounded by lines and by characters", () => {
    const lines = new LogLines({ maxLines: 3, maxCharacters: 10 });
    for (const text of ["a", "b", "c", "d"]) lines.add("host-1", "stdout", "Class actor-1", text);
    expect(lines.from(0)).toEqual({
      lines: ["b", "c", "d"].map((text, index) => ({
        number: index + 1,
        hostId: "host-1",
        stream: "stdout",
        owner: "Class actor-1",
        text,
      })),
      next: 4,
      written: 4,
      missed: 1,
      isEnd: false,
    });
    lines.add("host-1", "stderr", "", "x".repeat(9));
    expect(texts(lines)).toEqual(["d", "x".repeat(9)]);
    lines.add("host-1", "stderr", "", "y".repeat(100));
    expect(texts(lines)).toEqual(["y".repeat(100)]);
    expect(lines.from(5)).toMatchObject({ missed: 0, next: 6 });
    expect(lines.from(1000)).toMatchObject({ lines: [], missed: 0, next: 6 });
  });

  test("are given in parts of at most 1,000, and the end behind the last", () => {
    const lines = new LogLines();
    for (let line = 0; line < 2500; line++) lines.add("host-1", "stdout", "", String(line));
    lines.end();
    const given: string[] = [];
    const sizes: number[] = [];
    for (let next = 0, isEnd = false; !isEnd;) {
      const part = lines.from(next);
      sizes.push(part.lines.length);
      given.push(...part.lines.map(({ text }) => text));
      ({ next, isEnd } = part);
    }
    expect(sizes).toEqual([1000, 1000, 500]);
    expect(given).toEqual(Array.from({ length: 2500 }, (_, line) => String(line)));
  });

  test("wake who waits once, and forget who does not wait any more", () => {
    const lines = new LogLines();
    const woken: string[] = [];
    lines.whenMore(() => woken.push("first"));
    const leave = lines.whenMore(() => woken.push("second"));
    leave();
    expect(lines.waiting).toBe(1);
    lines.add("host-1", "stdout", "", "a");
    lines.add("host-1", "stdout", "", "b");
    lines.whenMore(() => woken.push("third"));
    lines.end();
    expect(woken).toEqual(["first", "third"]);
    expect(lines.waiting).toBe(0);
  });
});

describe("the socket", () => {
  let directory: string;
  beforeEach(async () => {
    directory = await mkdtemp(join(tmpdir(), "rayling-control-"));
    vi.stubEnv("RAYLING_CONTROL_DIRECTORY", directory);
  });
  afterEach(async () => {
    await shutdown();
    expect(await readdir(directory)).toEqual([]);
    await rm(directory, { recursive: true });
    vi.unstubAllEnvs();
  });

  const limitMs = 60_000;
  const start = (): Promise<unknown> => init({ numCpus: 1, prewarm: 0 });

  async function record(): Promise<FoundRecord> {
    for (;;) {
      const [found] = await readRecords(directory);
      if (found !== undefined) return found;
      await new Promise((resolve) => setImmediate(resolve));
    }
  }

  async function client(): Promise<DriverClient> {
    await record();
    const [found] = await findDrivers(directory);
    if (found?.state !== "answers") throw new Error(`the driver is ${found?.state}`);
    return found.client;
  }

  /** Says what it likes. */
  async function raw(token?: string): Promise<Channel> {
    const found = await record();
    return dial(
      { place: { path: found.path }, token: token ?? found.token },
      { peerId: "somebody", wayId: undefined },
      {
        peerId: "the driver",
        explain: async () => ({ kind: "unreachable", message: "it hung up" }),
      },
    );
  }

  test("that cannot be opened, or removed, is a warning: the session ends as another does", async () => {
    const warnings: string[] = [];
    const onWarning = ({ message }: Error): void => void warnings.push(message);
    process.on("warning", onWarning);
    // Nothing can be made or removed below a file.
    const file = join(directory, "file");
    await writeFile(file, "");
    vi.stubEnv("RAYLING_CONTROL_DIRECTORY", join(file, "drivers"));
    await start();
    await eventually(() => expect(warnings).toHaveLength(1));
    await shutdown();
    expect(warnings).toEqual([expect.stringMatching(/cannot be opened.*ENOTDIR/)]);
    vi.stubEnv("RAYLING_CONTROL_DIRECTORY", directory);
    await rm(file);
    await start();
    const { path } = await record();
    await rm(path);
    await mkdir(path);
    await shutdown();
    await eventually(() => expect(warnings).toHaveLength(2));
    process.off("warning", onWarning);
    expect(warnings[1]).toContain(`the files of the control socket ${path} cannot be removed`);
    await rm(path, { recursive: true });
  });

  test("is gone with its session, also with one that ends at once", async () => {
    await start();
    await shutdown();
    expect(await readdir(directory)).toEqual([]);
    await start();
    const driver = await client();
    await shutdown();
    expect(await driver.closed).toMatchObject({ message: "the driver has ended" });
    await expect(driver.ask("status", [], limitMs)).rejects.toMatchObject({ code: "DRIVER_GONE" });
  });

  test("lets in who has the token", async () => {
    await start();
    await expect(raw("another token")).rejects.toMatchObject({ code: "AUTHENTICATION" });
    expect(await (await client()).ask("status", [], limitMs)).toMatchObject({
      driver: { pid: process.pid },
    });
  });

  test.each<[string, Uint8Array]>([
    ["too long", new Uint8Array(64 * 1024 + 1)],
    ["no message", Uint8Array.of(0xc1, 0xff, 0xff)],
  ])("hangs up on who sends what is %s, and on nobody else", async (_, bytes) => {
    await start();
    const driver = await client();
    const channel = await raw();
    channel.onMessage(() => undefined);
    channel.send({ bytes, buffers: [] });
    await channel.closed;
    expect(await driver.ask("status", [], limitMs)).toMatchObject({ pendingLines: 0 });
  });

  test.each<[string, readonly unknown[], RegExp]>([
    ["list", ["secrets", {}], /there are no "secrets" to list/],
    ["list", ["actors", 7], /options must be an object/],
    ["list", ["actors", { limit: 1e9 }], /at most 10000/],
    ["list", ["actors", { filters: [["__proto__", "=", 1]] }], /cannot be filtered by "__proto__"/],
    ["summarize", ["nodes", {}], /no summary of "nodes"/],
    ["memory", [{ timeoutMs: -1 }], /timeoutMs must be a whole number/],
    ["timelinePart", [0], /there is no part 0/],
    ["logs", [-1, false], /number of a line must be/],
    ["logs", ["0", false], /number of a line must be/],
    ["shutdown", [], /./],
  ])("answers %s(%j) with what is wrong", async (name, given, message) => {
    await start();
    const driver = await client();
    await expect(driver.ask(name as "list", given as never, limitMs)).rejects.toThrow(message);
    expect(await driver.ask("status", [], limitMs)).toMatchObject({ pendingLines: 0 });
  });

  test("answers so many questions of a client at a time, and so many clients", async () => {
    await start();
    const first = await client();
    const waits = Array.from({ length: 16 }, () => first.ask("logs", [0, true], 0));
    for (const wait of waits) wait.catch(() => undefined);
    await expect(first.ask("logs", [0, true], 0)).rejects.toThrow("at most 16 questions");
    const others = await Promise.all(Array.from({ length: 31 }, () => client()));
    await expect((await client()).ask("status", [], limitMs)).rejects.toMatchObject({
      code: "DRIVER_GONE",
    });
    // Who is gone takes no place.
    for (const one of [first, ...others]) one.close();
    await Promise.allSettled(waits);
    const isOver = async (): Promise<boolean> =>
      (await client()).ask("status", [], limitMs).then(
        () => true,
        () => false,
      );
    await expect.poll(isOver, { timeout: limitMs }).toBe(true);
    const again = await client();
    const more = Promise.all(Array.from({ length: 16 }, () => again.ask("logs", [0, true], 0)));
    // The driver has got what was asked before.
    await again.ask("status", [], limitMs);
    await shutdown();
    for (const one of await more) expect(one).toMatchObject({ isEnd: true });
  });

  test("takes the directory along with the last driver, unless the user named it", async () => {
    vi.stubEnv("RAYLING_CONTROL_DIRECTORY", undefined);
    vi.stubEnv("TMPDIR", directory);
    for (let round = 0; round < 5; round++) {
      // The next one may be opened while the last one goes.
      await start();
      await new Promise((resolve) => setTimeout(resolve, round));
      await shutdown();
    }
    await start();
    const own = join(directory, `rayling-user-${process.getuid?.()}`);
    while ((await readRecords(own)).length === 0) {
      await new Promise((resolve) => setImmediate(resolve));
    }
    await shutdown();
    expect(await readdir(directory)).toEqual([]);
  });

  test("is not opened where it is not wanted", async () => {
    await init({ numCpus: 1, prewarm: 0, controlSocket: false });
    await new Promise((resolve) => setImmediate(() => setImmediate(resolve)));
    await shutdown();
    expect(await findDrivers(directory)).toEqual([]);
    await expect(init({ controlSocket: "no" as never })).rejects.toMatchObject({
      option: "controlSocket",
    });
  });

  test("needs a directory with a short name", () => {
    vi.stubEnv("RAYLING_CONTROL_DIRECTORY", `/tmp/${"x".repeat(100)}`);
    expect(() => controlDirectory()).toThrow(/has 105 characters/);
    vi.stubEnv("RAYLING_CONTROL_DIRECTORY", undefined);
    vi.stubEnv("TMPDIR", `/tmp/${"x".repeat(100)}`);
    expect(controlDirectory()).toBe(`/tmp/rayling-user-${process.getuid?.()}`);
  });
});
