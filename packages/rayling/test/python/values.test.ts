/** Values between Python and Node, in their frames, without either. */
import { runInNewContext } from "node:vm";
import { expect, test } from "vitest";
import { describeThrown } from "../../src/python/actor-host/thrown.ts";
import { encodeFrame, type Frame, FrameReader } from "../../src/python/wire/frames.ts";
import { decode, encode } from "@rayling/core/python";

const noSignal = (): AbortSignal => {
  throw new Error("no argument asks for a signal");
};

/** The frames of bytes that arrive in chunks of that size. */
function framesOf(bytes: Buffer, size: number): Frame[] {
  const frames: Frame[] = [];
  const reader = new FrameReader((frame) => frames.push(frame));
  for (let at = 0; at < bytes.byteLength; at += size) reader.push(bytes.subarray(at, at + size));
  return frames;
}

const shaped = Object.assign(new Float32Array([1, 2, 3, 4, 5, 6]), { shape: [2, 3] });

test.each([
  ["a text that is not ASCII", "é€𝒳"],
  ["numbers that JSON lacks", [Number.NaN, Number.POSITIVE_INFINITY, Number.NEGATIVE_INFINITY, -0]],
  ["a large integer", { large: 2n ** 70n }],
  ["bytes, and none", [new Uint8Array([0, 255]), new Uint8Array()]],
  ["an object that looks like a tag", { $: ["b", 0], deep: { $: 1 } }],
  ["arrays", [new BigInt64Array([-1n]), new Uint16Array([65_535]), shaped]],
  ["a date", [new Date(5)]],
])("%s comes back equal, however the frame is cut", (_, value) => {
  const { value: encoded, buffers } = encode(value);
  const parts = encodeFrame([encoded], buffers);
  for (const size of [1, 3, 64, 1_000_000]) {
    const frames = framesOf(Buffer.concat([...parts, ...encodeFrame([1], [])]), size);
    expect(frames).toHaveLength(2);
    const [{ head, buffers: memory } = { head: [], buffers: [] }] = frames;
    const [back] = decode(head, memory, noSignal) as unknown[];
    expect(back).toEqual(value);
    expect(frames[1]?.head).toEqual([1]);
  }
});

test("plain values travel as they are, and what Python lacks is given as JSON would", () => {
  expect(encode([1, "a", null, { b: true }])).toEqual({
    value: [1, "a", null, { b: true }],
    isTagged: false,
    buffers: [],
  });
  expect(encode([undefined, { left: undefined, out: () => 1 }]).value).toEqual([null, {}]);
  expect(encode(new Map([["a", new Set([1])]])).value).toEqual({ a: [1] });
  expect(encode(new URL("http://a/")).value).toBe("http://a/");
  expect(encode(new RangeError("no")).value).toEqual({ name: "RangeError", message: "no" });
});

test("buffers are copies", () => {
  const array = new Float64Array([1]);
  const { buffers } = encode(array);
  array[0] = 2;
  expect(new Float64Array(buffers[0]?.slice().buffer ?? new ArrayBuffer())[0]).toBe(1);
});

test("what Python cannot have is named with its path", () => {
  const loop: { inner: unknown[] } = { inner: [] };
  loop.inner.push(loop);
  expect(() => encode(loop)).toThrow("inner.0 of the value is inside itself");
  expect(() => encode({ list: [Symbol("x")] })).toThrow("list.0 of the value is Symbol(x)");
});

const elsewhere = (code: string): unknown => runInNewContext(code);

class Hidden {
  readonly #score = 1;
  score(): number {
    return this.#score;
  }
}

test.each<[string, unknown, string]>([
  ["a promise", { score: Promise.resolve(1) }, "score of the value is a Promise; await it first"],
  ["a promise in a list", [1, Promise.resolve(1)], "1 of the value is a Promise; await it first"],
  [
    "what can be awaited",
    [new Proxy(Promise.resolve(1), {})],
    "0 of the value is a Promise; await it first",
  ],
  ["a pattern", { pattern: /a/g }, "pattern of the value is an instance of RegExp with nothing in"],
  [
    "headers",
    { headers: new Headers({ a: "1" }) },
    "headers of the value is an instance of Headers",
  ],
  ["a form", new FormData(), "the value is an instance of FormData"],
  ["a blob", new Blob(["a"]), "the value is an instance of Blob"],
  ["parameters", new URLSearchParams("a=1"), "the value is an instance of URLSearchParams"],
  ["an answer", [new Response("a")], "0 of the value is an instance of Response"],
  ["a weak map", new WeakMap(), "the value is an instance of WeakMap"],
  ["a weak set", new WeakSet(), "the value is an instance of WeakSet"],
  ["an iterator", { all: [1].values() }, "all of the value is an instance of Iterator"],
  ["a class whose fields are private", [new Hidden()], "0 of the value is an instance of Hidden"],
  [
    "a key that is an object",
    { m: new Map([[{ x: 1 }, 1]]) },
    "m of the value is a Map with the key { x: 1 }",
  ],
  [
    "a key that is a list",
    new Map([[["a", "b"], 1]]),
    "the value is a Map with the key [ 'a', 'b' ]",
  ],
  ["a symbol as a key", new Map([[Symbol("s"), 1]]), "the value is a Map with the key Symbol(s)"],
  [
    "keys that are one text",
    new Map<unknown, number>([
      [1, 10],
      ["1", 20],
    ]),
    "the value is a Map with the keys 1 and '1'",
  ],
])("%s: what would lose content is refused where it is", (_, value, problem) => {
  expect(() => encode(value)).toThrow(TypeError);
  expect(() => encode(value)).toThrow(problem);
});

test.each<[string, unknown, unknown]>([
  ["primitives in objects", [Object(5), Object("ab"), Object(true)], [5, "ab", true]],
  ["a map of another realm", elsewhere("new Map([['a', new Set([1])]])"), { a: [1] }],
  ["empty objects", [{}, Object.create(null), elsewhere("({})")], [{}, {}, {}]],
  [
    "keys that stay apart as texts",
    new Map<unknown, number>([
      [1, 1],
      [true, 2],
      [2n, 3],
      [null, 4],
    ]),
    { 1: 1, true: 2, 2: 3, null: 4 },
  ],
  ["an instance with properties of its own", Object.assign(new Hidden(), { a: 1 }), { a: 1 }],
])("%s: all content arrives", (_, value, arrived) => {
  expect(encode(value).value).toEqual(arrived);
});

const nested = (levels: number): unknown =>
  Array.from({ length: levels - 1 }).reduce<unknown>((inside) => [inside], []);

test.each([
  ["an invalid date", { at: [new Date(Number.NaN)] }, "at.0 of the value is Invalid Date"],
  ["a date beyond the year 9999", new Date(8.64e15), "which Python has no date for"],
  ["a date before the year 1", new Date(-8.64e15), "which Python has no date for"],
  ["a shape of another size", Object.assign(new Float32Array(6), { shape: [4, 4] }), "of 6 with"],
  ["a shape that is none", Object.assign(new Int8Array(6), { shape: [-2, -3] }), "of 6 with"],
  ["an integer that Python does not read", 10n ** 4300n, "an integer of 4301 digits"],
  ["more levels than Python reads", nested(201), "more than 200 levels"],
])("%s is refused where the value is", (_, value, problem) => {
  expect(() => encode(value)).toThrow(new RegExp(problem));
});

test("the largest of what Python can have is encoded", () => {
  for (const value of [nested(200), new Date("9999-12-31T23:59:59.999Z"), 10n ** 4299n]) {
    expect(() => encode(value)).not.toThrow();
  }
});

const fails = (): never => {
  throw new Error("no stack");
};

test.each([
  ["a stack", Object.defineProperty(new Error("g"), "stack", { get: fails })],
  ["a cause", Object.defineProperty(new Error("g"), "cause", { get: fails })],
  ["a proxy", new Proxy({}, { get: fails, getPrototypeOf: fails })],
])("%s that throws when it is read is described", (_, thrown) => {
  const { name, message } = describeThrown(thrown);
  expect([name, message]).toEqual(["Error", "what was thrown cannot be described: no stack"]);
});
