import { inspect } from "node:util";
import { runInNewContext } from "node:vm";
import { Packr } from "msgpackr/pack";
import { describe, expect, test } from "vitest";
import { Codec, type Encoded } from "../src/protocol/codec.ts";
import { fromFailure, toFailure } from "../src/protocol/failure.ts";
import { RaySystemError, UnserializableException } from "../src/shared/errors.ts";

const codec = new Codec({
  isReference: () => false,
  write: () => undefined,
  read: () => ({}),
  decline: () => undefined,
});
const packr = new Packr({ structuredClone: true, useRecords: true });
const encoded = (bytes: Uint8Array): Encoded => ({
  bytes,
  start: 0,
  end: bytes.length,
  buffers: [],
  referenceCount: 0,
  references: undefined,
});
/** A special value of that content, as a peer may write it. */
const special = (content: unknown): Encoded =>
  encoded(Buffer.concat([Buffer.of(0xd4, 0x52, 0), packr.pack(content)]));

const plain = { name: "Error", message: "m", stack: "s", fields: {} };

describe("an error payload from a peer", () => {
  test.each([
    ["nothing", null],
    ["a number", 5],
    ["a list", []],
    ["an error without a name", { ...plain, name: undefined }],
    ["an error whose message is none", { ...plain, message: { toString: 1 } }],
    ["an error whose fields are none", { ...plain, fields: null }],
    ["an error of no classes", { ...plain, classes: "Error" }],
    ["an error of a class without a name", { ...plain, classes: [5] }],
  ])("and is %s, is an error all the same", (_name, data) => {
    expect(fromFailure(data as never)).toBeInstanceOf(RaySystemError);
    expect(() => codec.decodeFailure(encoded(packr.pack(data)))).toThrow(RaySystemError);
  });

  test.each(["constructor", "__proto__", "toString", "hasOwnProperty"])(
    "of a class named %s is an Error, and nothing of the language's own",
    (name) => {
      const error = fromFailure({ ...plain, name });
      expect(Object.getPrototypeOf(error)).toBe(Error.prototype);
      expect(error.name).toBe(name);
    },
  );

  test("whose class cannot be used here still says what it said, and why it is no instance", () => {
    const origin = { moduleUrl: "file:///errors.js", exportName: "Touchy", name: "Touchy" };
    const payload = { ...toFailure(new RangeError("outside"), { encodable: () => true }), origin };
    const error = fromFailure(payload, () => ({
      get prototype(): object {
        throw new Error("not here");
      },
    }));
    expect(error).toBeInstanceOf(UnserializableException);
    expect(error).toMatchObject({
      code: "UNSERIALIZABLE_EXCEPTION",
      message: "RangeError: outside",
      originalName: "RangeError",
      originalMessage: "outside",
      cause: { message: "not here" },
    });
    expect(error.stack).toContain("failure.test.ts");
  });

  test("has the fields that it came with as its own, whatever they are called", () => {
    const fields = JSON.parse('{"__proto__":{"polluted":1},"constructor":2,"code":"X"}') as object;
    const error = fromFailure({ ...plain, fields: fields as never });
    expect(error).toBeInstanceOf(Error);
    expect(({} as { polluted?: number }).polluted).toBeUndefined();
    expect((error as { polluted?: number }).polluted).toBeUndefined();
    expect(error).toMatchObject({ code: "X" });
  });
});

describe("a special value of nobody's making", () => {
  test.each<[string, unknown]>([
    ["a slot that is a name", ["slot", "constructor"]],
    ["a slot that is not there", ["slot", 3]],
    ["a buffer that is a name", ["buffer", "SharedArrayBuffer", "constructor", 0, 8]],
    ["a buffer that is not there", ["buffer", "Uint8Array", 0, 0, 8]],
    ["a view of a class that is none", ["view", "constructor", new Uint8Array(8)]],
    ["a view of what is no bytes", ["view", "Uint8Array", { length: 2 ** 32 - 1 }]],
    ["a text of what is no bytes", ["text", { length: 2 ** 32 - 1 }]],
    ["a text of a number", ["text", 2 ** 31]],
    ["a class that nobody registered", ["class", "constructor", 1]],
    ["an unknown kind", ["eval", "process.exit()"]],
    ["nothing", null],
  ])("is refused: %s", (_name, content) => {
    expect(() => codec.decode(special(content))).toThrow(RaySystemError);
  });

  test("with a key __proto__ changes no prototype", () => {
    // {"__proto__": {"polluted": 1}} as a record: its one key, then its value.
    const key = Buffer.from("\u00a9__proto__", "latin1");
    const record = Buffer.concat([
      Buffer.of(0xd4, 0x72, 0x40, 0x91),
      key,
      packr.pack({ polluted: 1 }),
    ]);
    const value = codec.decode(encoded(record)) as Record<string, unknown>;
    expect(Object.getPrototypeOf(value)).toBe(Object.prototype);
    expect(value["polluted"]).toBeUndefined();
    expect(({} as { polluted?: number }).polluted).toBeUndefined();
  });
});

describe("an error of the language comes back with its class and parts", () => {
  const back = (thrown: unknown): Error =>
    fromFailure(structuredClone(toFailure(thrown, { encodable: () => true })));

  test.each([
    ["AbortError", 20],
    ["TimeoutError", 23],
    ["DataCloneError", 25],
  ])("DOMException %s", (name, code) => {
    const error = back(Object.assign(new DOMException("gone", name), { extra: 1 }));
    expect(error).toBeInstanceOf(DOMException);
    expect(error).toBeInstanceOf(Error);
    expect(error).toMatchObject({ name, code, message: "gone", extra: 1 });
    expect(String(error)).toBe(`${name}: gone`);
    const { reason } = AbortSignal.abort() as { readonly reason: Error };
    expect(back(new Error("outer", { cause: reason })).cause).toMatchObject({ code: 20 });
  });

  test("AggregateError, with items that are no errors", () => {
    const inner = new AggregateError([new TypeError("t")], "inner");
    const error = back(new AggregateError([1, "two", { three: 3 }, inner], "many"));
    expect(error).toBeInstanceOf(AggregateError);
    const { errors } = error as AggregateError;
    expect(errors.slice(0, 3)).toEqual([1, "two", { three: 3 }]);
    expect(errors[3]).toBeInstanceOf(AggregateError);
    expect((errors[3] as AggregateError).errors[0]).toBeInstanceOf(TypeError);
  });

  test.runIf("SuppressedError" in globalThis)("SuppressedError", () => {
    const error = back(new SuppressedError(new RangeError("in dispose"), "no error", "both"));
    expect(error).toBeInstanceOf(SuppressedError);
    expect(error).toMatchObject({ message: "both", suppressed: "no error" });
    expect((error as SuppressedError).error).toBeInstanceOf(RangeError);
    expect(Object.keys(error)).toEqual([]);
  });

  test("one that is its own cause, or that of its cause", () => {
    const own = new Error("own");
    own.cause = own;
    const error = back(own);
    expect(error.cause).toBe(error);
    const outer = new TypeError("outer");
    outer.cause = new RangeError("inner", { cause: outer });
    const both = back(outer);
    expect(both.cause).toBeInstanceOf(RangeError);
    expect((both.cause as Error).cause).toBe(both);
  });

  test("one that is a field or a member of itself, and one that is several parts", () => {
    const inner = new RangeError("inner");
    const own = new AggregateError([inner], "own", { cause: inner });
    Object.assign(own, { self: own, again: inner });
    own.errors.push(own, "late", new AggregateError(["late"]));
    Object.assign(inner, { outer: own });
    const error = back(own) as AggregateError & { readonly again: Error };
    expect(error).toMatchObject({ self: error });
    expect(error.again).toBeInstanceOf(RangeError);
    expect(error.again).toMatchObject({ outer: error });
    expect(error.cause).toBe(error.again);
    expect(error.errors.slice(0, 3)).toEqual([error.again, error, "late"]);
    expect((error.errors[3] as AggregateError).errors).toEqual(["late"]);
  });

  test("of another realm", () => {
    const thrown: unknown = runInNewContext(
      "Object.assign(new RangeError('far', { cause: new TypeError('why') }), { left: 3 })",
    );
    const error = back(thrown);
    expect(error).toBeInstanceOf(RangeError);
    expect(error).toMatchObject({ message: "far", left: 3 });
    expect(error.cause).toBeInstanceOf(TypeError);
  });

  test("and a peer that names a cause which is not there gives none", () => {
    expect(fromFailure({ ...plain, cause: { up: 7 } }).cause).toBeUndefined();
    expect(fromFailure({ ...plain, cause: { up: "length" as never } }).cause).toBeUndefined();
    expect(fromFailure({ ...plain, cause: { same: 3 } }).cause).toBeUndefined();
  });
});

describe("an error with #private fields", () => {
  class Limited extends Error {
    readonly #after: number;
    constructor(after: number) {
      super("slow down");
      this.#after = after;
    }
    override get name(): string {
      return `Limited${this.#after}`;
    }
    get retryAfter(): number {
      return this.#after;
    }
    get shout(): string {
      return this.message.toUpperCase();
    }
    override toString(): string {
      return `after ${this.#after}`;
    }
    [inspect.custom](): string {
      return `after ${this.#after}`;
    }
  }
  const origin = { moduleUrl: "file:///limited.ts", exportName: "Limited" };
  const home = new Codec({
    isReference: () => false,
    write: () => undefined,
    read: () => ({}),
    decline: () => undefined,
    findOrigin: (one) => (one === Limited ? origin : undefined),
    findClass: () => Limited,
  });
  const thrown = (error: unknown): Error =>
    home.reviveFailure(home.decodeFailure(home.encodeFailure(error)));
  const value = (error: unknown): unknown => home.decode(home.encode({ error }, "value"));

  test.each<[string, (error: Error) => unknown]>([
    ["thrown", thrown],
    ["thrown twice", (error) => thrown(thrown(error))],
    ["a cause", (error) => thrown(new Error("outer", { cause: error })).cause],
    ["a value", (error) => (value(error) as { readonly error: unknown }).error],
  ])("has what its class reads of them, and is shown: %s", (_way, way) => {
    const error = way(new Limited(7)) as Limited;
    expect(error).toBeInstanceOf(Limited);
    expect(error.retryAfter).toBe(7);
    expect(error.name).toBe("Limited7");
    expect(Object.keys(error)).toEqual([]);
    // What needs none of them is still the class's own.
    expect(Object.hasOwn(error, "shout")).toBe(false);
    expect(error.shout).toBe("SLOW DOWN");
    expect(String(error)).toBe("Limited7: slow down");
    expect(inspect(error)).toContain("slow down");
  });

  test("keeps them as fields where its class is not known", () => {
    const failure = home.decodeFailure(home.encodeFailure(new Limited(7)));
    expect(fromFailure(failure)).toMatchObject({ name: "Limited7", retryAfter: 7 });
  });
});
