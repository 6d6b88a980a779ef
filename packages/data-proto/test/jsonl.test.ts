/**
 * JSON Lines on real files: a folder of its own per test, real pipes, a device that is always full.
 */
import { execFileSync } from "node:child_process";
import { existsSync } from "node:fs";
import {
  appendFile,
  mkdtemp,
  open,
  readFile,
  rename,
  rm,
  stat,
  truncate,
  writeFile,
} from "node:fs/promises";
import type { FileHandle } from "node:fs/promises";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { Writable } from "node:stream";
import { pathToFileURL } from "node:url";
import { gzipSync } from "node:zlib";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { JsonlError, openJsonlWriter, readJsonl } from "@rayling/data-proto";
import type { JsonlRecord, ReadJsonlOptions } from "@rayling/data-proto";
import { fullDisk } from "../../../test/fixtures/full-disk.ts";
import { withPlainHandles } from "../../../test/fixtures/plain-handles.ts";

let folder: string;

beforeEach(async () => {
  folder = await mkdtemp(join(tmpdir(), "rayling-jsonl-"));
});

afterEach(async () => {
  await rm(folder, { recursive: true, force: true });
});

async function fileOf(content: string | Uint8Array): Promise<string> {
  const path = join(folder, "in.jsonl");
  await writeFile(path, content);
  return path;
}

/** A pipe that is open for both ends: its reader waits for ever once it has read what was written. */
async function openPipe(): Promise<{ path: string; handle: FileHandle }> {
  const path = join(folder, "pipe");
  execFileSync("mkfifo", [path]);
  return { path, handle: await open(path, "r+") };
}

async function readAll(path: string | URL, options?: ReadJsonlOptions): Promise<JsonlRecord[]> {
  const records: JsonlRecord[] = [];
  for await (const record of readJsonl(path, options)) records.push(record);
  return records;
}

async function failure(work: Promise<unknown>): Promise<JsonlError> {
  const error: unknown = await work.then(
    () => new Error("nothing was thrown"),
    (reason: unknown) => reason,
  );
  if (error instanceof JsonlError) return error;
  throw error;
}

/** Beside it, and then over it. */
async function replaceBySed(path: string): Promise<void> {
  execFileSync("sed", ["-i", "s/x/y/", path]);
}

describe("readJsonl", () => {
  it.each([
    [
      "LF",
      '{"a":1}\n2\n',
      [
        [1, { a: 1 }],
        [2, 2],
      ],
    ],
    [
      "CRLF",
      '{"a":1}\r\n"x"\r\n',
      [
        [1, { a: 1 }],
        [2, "x"],
      ],
    ],
    [
      "a last line without newline",
      "1\n2",
      [
        [1, 1],
        [2, 2],
      ],
    ],
    [
      "blank lines, counted",
      "\n1\n \t\r\n\r\n2\n\n",
      [
        [2, 1],
        [5, 2],
      ],
    ],
    [
      "a byte order mark",
      "\uFEFF1\n2\n",
      [
        [1, 1],
        [2, 2],
      ],
    ],
    ["a byte order mark and nothing else", "\uFEFF", []],
    ["an empty file", "", []],
    ["line separators of Unicode inside a string", '"a\u2028b"\n', [[1, "a\u2028b"]]],
    [
      "null and false, which are values",
      "null\nfalse\n0\n",
      [
        [1, null],
        [2, false],
        [3, 0],
      ],
    ],
  ] as const)("reads %s", async (_, content, expected) => {
    const records = await readAll(await fileOf(content));
    expect(records.map(({ line, value }) => [line, value])).toEqual(expected);
  });

  it("keeps characters and lines whole across chunk borders", async () => {
    // 3-byte characters and odd lengths: with 256 KiB chunks every kind of cut occurs.
    const values = Array.from({ length: 400 }, (_, i) => "€".repeat(1000 + i));
    const path = await fileOf(values.map((value) => JSON.stringify(value)).join("\n"));
    expect((await stat(path)).size).toBeGreaterThan(4 * 256 * 1024);
    expect((await readAll(path)).map(({ value }) => value)).toEqual(values);
  });

  it("reads a line much longer than a chunk, and a file URL", async () => {
    const value = "x".repeat(3_000_000);
    const path = await fileOf(`1\n${JSON.stringify(value)}\n2\n`);
    expect((await readAll(pathToFileURL(path))).map((record) => record.value)).toEqual([
      1,
      value,
      2,
    ]);
  });

  it.each([
    ["cut off", '1\n{"a":\n3\n', 2, "JSON", false],
    ["a NaN of Python's", '1\n{"a": NaN}\n', 2, "JSON", false],
    ["two values", "1 2\n", 1, "JSON", false],
    ["torn at the end of the file", '1\n\n{"a":', 3, "JSON", true],
    [
      "bytes that are not UTF-8",
      Buffer.from([0x31, 0x0a, 0x22, 0xff, 0x22, 0x0a]),
      2,
      "UTF-8",
      false,
    ],
    ["a byte order mark in the middle", "1\n\uFEFF2\n", 2, "JSON", false],
  ] as const)(
    "names path, line and reason of a line that is %s",
    async (_, content, line, reason, unterminated) => {
      const path = await fileOf(content);
      const error = await failure(readAll(path));
      expect(error).toMatchObject({ code: "JSONL_MALFORMED", path, line, unterminated });
      expect(error.reason).toContain(`not valid ${reason}`);
      expect(error.message.startsWith(`${path}:${line}: `)).toBe(true);
    },
  );

  it("yields the good lines before a bad one", async () => {
    const seen: unknown[] = [];
    const path = await fileOf("1\n2\nbad\n4\n");
    const work = (async () => {
      for await (const { value } of readJsonl(path)) seen.push(value);
    })();
    expect((await failure(work)).line).toBe(3);
    expect(seen).toEqual([1, 2]);
  });

  it("hands bad lines to onMalformed and reads on", async () => {
    const bad: JsonlError[] = [];
    const path = await fileOf('1\n{"a":\n3\n{"b"');
    const records = await readAll(path, { onMalformed: (error) => bad.push(error) });
    expect(records).toEqual([
      { line: 1, value: 1 },
      { line: 3, value: 3 },
    ]);
    expect(bad.map(({ line, unterminated }) => [line, unterminated])).toEqual([
      [2, false],
      [4, true],
    ]);
  });

  it("counts a line without its ending and its byte order mark", async () => {
    const path = await fileOf('\uFEFF"12345678"\r\n"12345678"\n');
    expect(await readAll(path, { maxLineBytes: 10 })).toHaveLength(2);
    expect(await failure(readAll(path, { maxLineBytes: 9 }))).toMatchObject({
      code: "JSONL_LINE_TOO_LONG",
      path,
      line: 1,
    });
  });

  it.skipIf(process.platform === "win32")(
    "gives up on a line that is too long before its end arrives",
    async () => {
      const pipe = await openPipe();
      const records = readJsonl(pipe.path, { maxLineBytes: 1000 });
      await pipe.handle.write(`1\n"${"x".repeat(2000)}`);
      expect(await records.next()).toMatchObject({ value: { line: 1 } });
      const error = await failure(records.next());
      expect(error).toMatchObject({ code: "JSONL_LINE_TOO_LONG", line: 2 });
      expect(error.message).toContain("1000 bytes");
      await pipe.handle.close();
    },
  );

  it("says which file is missing or is none", async () => {
    const missing = join(folder, "missing.jsonl");
    expect(await failure(readAll(missing))).toMatchObject({
      code: "JSONL_NOT_FOUND",
      path: missing,
    });
    expect(await failure(readAll(folder))).toMatchObject({
      code: "JSONL_IO",
      path: folder,
      cause: { code: "EISDIR" },
    });
  });

  it("stops at an abort between records with the reason of the signal", async () => {
    const path = await fileOf("1\n2\n3\n");
    const reason = new Error("enough");
    const stop = new AbortController();
    const seen: unknown[] = [];
    const work = (async () => {
      for await (const { value } of readJsonl(path, { signal: stop.signal })) {
        seen.push(value);
        stop.abort(reason);
      }
    })();
    await expect(work).rejects.toBe(reason);
    expect(seen).toEqual([1]);
    await expect(readAll(path, { signal: stop.signal })).rejects.toBe(reason);
  });

  it.skipIf(process.platform === "win32")(
    "stops at an abort while it waits for a silent pipe",
    async () => {
      const pipe = await openPipe();
      const reason = new Error("enough");
      const stop = new AbortController();
      const records = readJsonl(pipe.path, { signal: stop.signal });
      await pipe.handle.write("1\n");
      expect(await records.next()).toEqual({ done: false, value: { line: 1, value: 1 } });
      const waiting = records.next();
      stop.abort(reason);
      await expect(waiting).rejects.toBe(reason);
      // Lets go of the read that the abort left behind.
      await pipe.handle.write("2\n");
      await pipe.handle.close();
    },
  );

  it.skipIf(process.platform === "win32")(
    "leaves a silent pipe when the loop is left",
    async () => {
      const pipe = await openPipe();
      await pipe.handle.write("1\n");
      for await (const { line } of readJsonl(pipe.path)) if (line === 1) break;
      await pipe.handle.close();
    },
  );

  it.skipIf(process.platform !== "linux")(
    "closes the file when the loop is left early, and after an error",
    async () => {
      const path = await fileOf("1\n2\nbad\n");
      const { readdir, readlink } = await import("node:fs/promises");
      const openFiles = async (): Promise<string[]> => {
        const links = (await readdir("/proc/self/fd")).map((fd) =>
          readlink(`/proc/self/fd/${fd}`).catch(() => "closed meanwhile"),
        );
        return (await Promise.all(links)).filter((target) => target === path);
      };
      for await (const { line } of readJsonl(path)) {
        expect(await openFiles()).toHaveLength(1);
        if (line === 1) break;
      }
      expect(await openFiles()).toEqual([]);
      await failure(readAll(path));
      expect(await openFiles()).toEqual([]);
    },
  );
});

describe("places of lines", () => {
  it("are those of bytes in the file, from which reading can begin again", async () => {
    const content = '\uFEFF{"a":"ä"}\r\n\n2\nbad\n"last"';
    const path = await fileOf(content);
    const options = { places: true, onMalformed: () => undefined };
    const records = await Array.fromAsync(readJsonl(path, options));
    const bytes = Buffer.from(content);
    const texts = records.map(({ place }) => bytes.subarray(place?.start, place?.end).toString());
    expect(texts).toEqual(['\uFEFF{"a":"ä"}\r', "2", '"last"']);
    for (const [at, { place }] of records.entries()) {
      const from = place?.start ?? 0;
      const rest = await Array.fromAsync(readJsonl(path, { ...options, from }));
      expect(rest.map(({ value }) => value)).toEqual(records.slice(at).map(({ value }) => value));
      expect(rest.map((one) => one.place)).toEqual(records.slice(at).map((one) => one.place));
    }
    expect(await Array.fromAsync(readJsonl(path, { from: bytes.length }))).toEqual([]);
  });

  it("are those of a packed file when it is unpacked", async () => {
    const path = join(folder, "in.jsonl.gz");
    await writeFile(path, gzipSync("1\n22\n"));
    const records = await Array.fromAsync(readJsonl(path, { places: true }));
    expect(records.map(({ place }) => place)).toEqual([
      { start: 0, end: 1 },
      { start: 2, end: 4 },
    ]);
  });
});

describe("openJsonlWriter", () => {
  it("writes what readJsonl reads, one line each, in the order of the calls", async () => {
    const path = join(folder, "out.jsonl");
    const values = [
      { text: "a\nb\r\n\u2028" },
      [1, null],
      "é",
      null,
      { ids: Int32Array.of(1, 2), at: new Date(0) },
    ];
    const writer = await openJsonlWriter(pathToFileURL(path));
    await Promise.all(values.map((value) => writer.write(value)));
    await writer.close();
    expect((await readFile(path, "utf8")).split("\n")).toHaveLength(values.length + 1);
    const plain = [...values.slice(0, 4), { ids: [1, 2], at: "1970-01-01T00:00:00.000Z" }];
    expect((await readAll(path)).map(({ value }) => value)).toEqual(plain);
  });

  it("takes a snapshot at the call", async () => {
    const path = join(folder, "out.jsonl");
    const writer = await openJsonlWriter(path);
    const record = { score: 1 };
    const written = writer.write(record);
    record.score = 2;
    await written;
    await writer.close();
    expect(await readFile(path, "utf8")).toBe('{"score":1}\n');
  });

  it("flush means that the file has it, while the writer stays open", async () => {
    const path = join(folder, "out.jsonl");
    const writer = await openJsonlWriter(path);
    for (let i = 0; i < 100; i++) await writer.write({ i });
    await writer.flush();
    expect(await readAll(path)).toHaveLength(100);
    await writer.write({ i: 100 });
    await writer.close();
    expect(await readAll(path)).toHaveLength(101);
  });

  it("starts anew unless told to append", async () => {
    const path = join(folder, "out.jsonl");
    const write = async (value: unknown, append: boolean): Promise<void> => {
      const writer = await openJsonlWriter(path, { append });
      await writer.write(value);
      await writer.close();
    };
    await write(1, true);
    await write(2, true);
    expect(await readFile(path, "utf8")).toBe("1\n2\n");
    await write(3, false);
    expect(await readFile(path, "utf8")).toBe("3\n");
  });

  it.each([
    [
      { apend: true },
      "apend",
      'openJsonlWriter has no option "apend"; it has append, maxLineBytes',
    ],
    [{ append: "yes" }, "append", 'openJsonlWriter: append must be a boolean, got "yes"'],
    ["append", "options", 'openJsonlWriter: options must be an object, got "append"'],
  ])("refuses %j and leaves the file as it is", async (options, key, message) => {
    const path = await fileOf("1\n2\n");
    await expect(openJsonlWriter(path, options as never)).rejects.toMatchObject({
      code: "BAD_ARGUMENT",
      key,
      message,
    });
    expect(await readFile(path, "utf8")).toBe("1\n2\n");
  });

  it("appends after a line cut off by a crash without spoiling the new one", async () => {
    const path = await fileOf('1\n{"torn":');
    const writer = await openJsonlWriter(path, { append: true });
    await writer.write(3);
    await writer.close();
    expect(await readFile(path, "utf8")).toBe('1\n{"torn":\n3\n');
  });

  it.each([
    ["NaN deep inside", { rows: [{ score: 1 }, { score: Number.NaN }] }, "$.rows.1.score is NaN"],
    ["infinity at the root", Number.POSITIVE_INFINITY, "$ is Infinity"],
    ["a number after a nested record", { a: { b: 1 }, c: -Infinity }, "$.c is -Infinity"],
    ["NaN in a typed array", { logProbs: Float32Array.of(0, Number.NaN) }, "$.logProbs.1 is NaN"],
    ["a bigint", { id: 1n }, "$.id is a bigint"],
    ["a Map", { m: new Map([[1, 2]]) }, "$.m is an instance of Map"],
    [
      "an Error",
      { cause: Object.assign(new Error("x"), { code: "E" }) },
      "$.cause is an instance of Error",
    ],
    [
      "an invalid Date",
      { at: [new Date(0), new Date(Number.NaN)] },
      "$.at.1 is an invalid Date, which JSON would write as null",
    ],
    ["an invalid Date at the root", new Date("no date"), "$ is an invalid Date"],
    ["what says null of itself", { a: { toJSON: () => null } }, "$.a is an instance of Object"],
    ["undefined", undefined, "undefined"],
    ["a function", () => 1, "function"],
  ])("refuses %s and stays usable", async (_, value, culprit) => {
    const path = join(folder, "out.jsonl");
    const writer = await openJsonlWriter(path);
    const error = await failure(writer.write(value));
    expect(error).toMatchObject({ code: "JSONL_BAD_VALUE", path });
    expect(error.reason).toContain(culprit);
    await writer.write("next");
    await writer.close();
    expect(await readFile(path, "utf8")).toBe('"next"\n');
  });

  it("refuses a cycle, and a record that a reader would not take", async () => {
    const path = join(folder, "out.jsonl");
    const writer = await openJsonlWriter(path, { maxLineBytes: 10 });
    const cycle: Record<string, unknown> = {};
    cycle["self"] = cycle;
    expect(await failure(writer.write(cycle))).toMatchObject({ code: "JSONL_BAD_VALUE" });
    expect(await failure(writer.write("123456789"))).toMatchObject({
      code: "JSONL_LINE_TOO_LONG",
      path,
    });
    await writer.write("12345678");
    await writer.close();
    expect(await readAll(path, { maxLineBytes: 10 })).toHaveLength(1);
  });

  it("close is idempotent, disposes, and ends writing", async () => {
    const path = join(folder, "out.jsonl");
    const writer = await openJsonlWriter(path);
    await writer.write(1);
    expect(writer.close()).toBe(writer.close());
    await writer[Symbol.asyncDispose]();
    expect(await failure(writer.write(2))).toMatchObject({ code: "JSONL_CLOSED", path });
    expect(await readFile(path, "utf8")).toBe("1\n");
  });

  it("says which folder is missing or is none", async () => {
    const missing = join(folder, "no", "out.jsonl");
    expect(await failure(openJsonlWriter(missing))).toMatchObject({
      code: "JSONL_NOT_FOUND",
      path: missing,
    });
    expect(await failure(openJsonlWriter(folder))).toMatchObject({
      code: "JSONL_IO",
      path: folder,
      cause: { code: "EISDIR" },
    });
  });

  it.skipIf(!existsSync("/dev/full"))(
    "a full disk rejects flush, every later write, and close",
    async () => {
      const path = "/dev/full";
      const writer = await openJsonlWriter(path);
      await writer.write(1);
      const full = { code: "JSONL_IO", path, cause: { code: "ENOSPC" } };
      expect(await failure(writer.flush())).toMatchObject(full);
      expect(await failure(writer.write(2))).toMatchObject(full);
      expect(await failure(writer.close())).toMatchObject(full);
      expect(await failure(writer.close())).toMatchObject(full);
    },
  );

  it.skipIf(!existsSync("/dev/full"))(
    "a full disk rejects the writes that wait for room",
    async () => {
      const writer = await openJsonlWriter("/dev/full");
      const big = "x".repeat(700_000);
      const results = await Promise.allSettled([
        writer.write(big),
        writer.write(big),
        writer.write(big),
      ]);
      expect(results.map(({ status }) => status)).toEqual(["fulfilled", "rejected", "rejected"]);
      expect(await failure(writer.close())).toMatchObject({ code: "JSONL_IO" });
    },
  );

  it.each(["out.jsonl", "out.jsonl.gz"])(
    "a disk that is full within a write leaves no line that was refused: %s",
    async (name) => {
      const path = join(folder, name);
      const writer = await openJsonlWriter(path);
      await writer.write("before");
      await writer.flush();
      const { size } = await stat(path);
      using _ = await fullDisk(30);
      // Three lines in one write, of which the second is cut off.
      const flushed = ["x".repeat(18), "y".repeat(18), "z"].map((value) =>
        Promise.all([writer.write(value), writer.flush()]).then(
          () => value,
          (error: JsonlError) => error.code,
        ),
      );
      const first = name.endsWith(".gz") ? "JSONL_IO" : "x".repeat(18);
      expect(await Promise.all(flushed)).toEqual([first, "JSONL_IO", "JSONL_IO"]);
      expect(await failure(writer.close())).toMatchObject({ cause: { code: "ENOSPC" } });
      const lines = (await readAll(path)).map(({ value }) => value);
      expect(lines).toEqual(name.endsWith(".gz") ? ["before"] : ["before", first]);
      expect((await stat(path)).size).toBe(name.endsWith(".gz") ? size : size + 21);
    },
  );

  it("records of one turn go in one write", async () => {
    const blocks: string[] = [];
    const target = new Writable({
      write: (block: Buffer, _, done) => (blocks.push(block.toString()), done()),
    });
    const writer = await openJsonlWriter(target);
    await Promise.all([writer.write("a part"), writer.write("its whole")]);
    await writer.close();
    expect(blocks).toEqual(['"a part"\n"its whole"\n']);
  });

  describe("a file that is not what it was any more fails, whoever", () => {
    const line = { text: "x".repeat(100) };
    it.each<[string, (path: string) => Promise<unknown>, RegExp]>([
      ["removed it", (path) => rm(path), /it was removed/],
      ["moved it away", (path) => rename(path, `${path}.old`), /it was removed/],
      ["removed its folder", (path) => rm(dirname(path), { recursive: true }), /it was removed/],
      ["put another one there", replaceBySed, /another file took its place/],
      ["emptied it", (path) => truncate(path, 0), /it was cut off \(0 bytes in place of 224\)/],
      ["cut off its end", (path) => truncate(path, 200), /it was cut off \(200 bytes in place of/],
      ["appended to it", (path) => appendFile(path, "{}\n"), /something else writes it, too/],
    ])("%s", async (_, change, reason) => {
      for (const how of ["write", "close", "verify"] as const) {
        const path = join(await mkdtemp(join(folder, "of-")), "out.jsonl");
        const writer = await openJsonlWriter(path);
        await writer.write(line);
        await writer.write(line);
        await writer.flush();
        await change(path);
        if (how === "write") await writer.write(line);
        const work = {
          write: () => writer.flush(),
          close: () => writer.close(),
          verify: () => writer.verify().finally(() => writer.close().catch(() => undefined)),
        };
        const error = await failure(work[how]());
        expect(error).toMatchObject({ code: "JSONL_CHANGED", path });
        if (how !== "write") {
          expect(error.reason).toMatch(reason);
          continue;
        }
        expect(await failure(writer.write(line))).toBe(error);
        expect(await failure(writer.close())).toBe(error);
      }
    });

    it("wrote other bytes into it", async () => {
      const path = join(folder, "out.jsonl");
      await writeFile(path, "before\n");
      const writer = await openJsonlWriter(path, { append: true });
      await writer.write(line);
      await writer.verify();
      await using file = await open(path, "r+");
      await file.write("y", 30);
      expect(await failure(writer.verify())).toMatchObject({ code: "JSONL_CHANGED" });
      await writer.close();
    });

    it("did nothing, where file handles cannot be disposed of", async () => {
      const writer = await openJsonlWriter(join(folder, "out.jsonl"));
      await writer.write(line);
      await withPlainHandles(() => writer.verify());
      await writer.close();
    });

    it("emptied it: what comes after stands at its start, without a hole", async () => {
      const path = join(folder, "out.jsonl");
      const writer = await openJsonlWriter(path);
      await writer.write(line);
      await writer.flush();
      await truncate(path, 0);
      await writer.write("after");
      expect(await failure(writer.close())).toMatchObject({ code: "JSONL_CHANGED" });
      expect(await readFile(path, "utf8")).toBe('"after"\n');
    });
  });

  describe("under gzip", () => {
    const values = Array.from({ length: 400 }, (_, n) => ({ n, text: `text ${n} `.repeat(20) }));
    async function written(path: string, some: readonly unknown[], append = true): Promise<void> {
      const writer = await openJsonlWriter(path, { append });
      for (const value of some) {
        await writer.write(value);
        // Members of their own.
        await writer.flush();
      }
      await writer.verify();
      await writer.close();
    }
    const valuesOf = async (path: string): Promise<unknown[]> =>
      (await readAll(path)).map(({ value }) => value);

    const wholeValuesOf = async (path: string): Promise<unknown[]> =>
      (await readAll(path, { onMalformed: () => undefined })).map(({ value }) => value);

    it("is what gzip and readJsonl read, also when it was appended to", async () => {
      const path = join(folder, "out.jsonl.gz");
      await written(path, values.slice(0, 100), false);
      await written(path, values.slice(100));
      expect(await valuesOf(path)).toEqual(values);
      const text = execFileSync("gzip", ["-dc", path], { encoding: "utf8" });
      expect(text.trimEnd().split("\n")).toHaveLength(400);
    });

    it("leaving the loop early closes the file", async () => {
      const path = join(folder, "out.jsonl.gz");
      await written(path, values);
      for await (const { line } of readJsonl(path)) if (line === 3) break;
      await rm(path);
    });

    it("cut off anywhere: what is whole is read, and what is appended comes behind it", async () => {
      const path = join(folder, "out.jsonl.gz");
      await written(path, values.slice(0, 5));
      const whole = await readFile(path);
      for (let bytes = 0; bytes < whole.length; bytes += bytes < 60 ? 1 : 7) {
        await writeFile(path, whole.subarray(0, bytes));
        const readable = await wholeValuesOf(path);
        expect(readable).toEqual(values.slice(0, readable.length));
        await written(path, values.slice(5, 7));
        expect(await wholeValuesOf(path)).toEqual([...readable, ...values.slice(5, 7)]);
      }
    });

    it("appends behind a line of others that has no end, and refuses what is no gzip", async () => {
      const path = join(folder, "out.jsonl.gz");
      await writeFile(path, gzipSync('{"a":1}'));
      await written(path, [2]);
      expect(await valuesOf(path)).toEqual([{ a: 1 }, 2]);
      await writeFile(path, "plain text");
      const error = await failure(openJsonlWriter(path, { append: true }));
      expect(error).toMatchObject({ code: "JSONL_MALFORMED", path });
      expect(await readFile(path, "utf8")).toBe("plain text");
    });
  });

  it.skipIf(process.platform === "win32")(
    "write waits while the reader of a pipe is behind",
    async () => {
      const pipe = await openPipe();
      const writer = await openJsonlWriter(pipe.path);
      const record = "x".repeat(600_000);
      const states: string[] = [];
      const writes = [1, 2, 3].map((n) =>
        writer.write(record).then(() => states.push(`write ${n}`)),
      );
      await writes[0];
      // Nothing has been read, so more than the pipe's own buffer cannot have left: 1 MiB is on its way.
      expect(states).toEqual(["write 1"]);
      let received = 0;
      const total = 3 * (record.length + 3);
      while (received < total)
        received += (await pipe.handle.read(Buffer.alloc(65_536), 0, 65_536)).bytesRead;
      await Promise.all(writes);
      expect(states).toHaveLength(3);
      await writer.close();
      await pipe.handle.close();
      expect(received).toBe(total);
    },
  );
});
