/** What the codec does with refs, classes and errors that are in each other; plain values are in values-property.test.ts and test/core/values.test.ts. */
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { difference } from "../../../test/fixtures/same-value.ts";
import { Codec } from "../src/protocol/codec.ts";
import { addSerializer, serializers } from "../src/protocol/values/serializers.ts";
import { NotEncodableError } from "../src/shared/errors.ts";

class Ref {
  readonly id: number;
  constructor(id: number) {
    this.id = id;
  }
}

class Node {
  data: unknown;
  constructor(data?: unknown) {
    this.data = data;
  }
}

const codec = new Codec({
  isReference: (value) => value instanceof Ref,
  write: (value) => (value as Ref).id,
  read: (data) => new Ref(data as number),
  decline: () => undefined,
});
const back = <T>(value: T): T => codec.decode(codec.encode(value, "value")) as T;

beforeAll(() =>
  addSerializer(Node, {
    id: "codec/Node",
    write: (node) => (node as Node).data,
    read: (data) => new Node(data),
  }),
);
afterAll(() => {
  serializers.byClass.delete(Node);
  serializers.byId.delete("codec/Node");
});

describe("refs", () => {
  test("are counted, and come back in their places, wherever they are", () => {
    const refs = Array.from({ length: 9 }, (_, id) => new Ref(id));
    const [a, b, c, d, e, f, g, h, i] = refs;
    const list: unknown[] & { more?: unknown } = [a, , [b]]; // oxlint-disable-line no-sparse-arrays
    list[50_000] = c;
    list.more = { d, self: list };
    const error = Object.assign(new Error("with refs", { cause: e }), { owner: [f] });
    const value = [list, error, new Map([[g, h]]), JSON.parse("{}"), new Set([i, a])];
    Object.defineProperty(value[3], "__proto__", { value: [b, i], enumerable: true });
    const encoded = codec.encode(value, "value");
    expect(encoded.referenceCount).toBe(9);
    expect(new Set(encoded.references)).toEqual(new Set(refs));
    const arrived = codec.decode({ ...encoded, references: undefined }) as typeof value;
    const members = [...(arrived[4] as Set<unknown>)];
    expect([...(arrived[2] as Map<unknown, unknown>)].flat()).toEqual([g, h]);
    expect(members).toEqual([i, a]);
    const first = arrived[0] as typeof list & { more: { d: Ref; self: unknown } };
    expect([first[0], (first[2] as Ref[])[0], first[50_000], first.more.d]).toEqual([a, b, c, d]);
    expect(first.more.self).toBe(first);
    const failed = arrived[1] as Error & { owner: Ref[] };
    expect([failed.cause, failed.owner[0]]).toEqual([e, f]);
    // One that is there twice is one.
    expect(members[1]).toBe(first[0]);
  });

  test("are taken over by who passes a value on without reading it", () => {
    const list = Object.assign([new Ref(1)], { more: new Ref(2), length: 5000 });
    const sent = codec.encode([list, new Error("e", { cause: new Ref(3) })], "value");
    const encoded = { ...sent, references: undefined };
    codec.claim(encoded);
    expect(encoded.references).toEqual([new Ref(1), new Ref(2), new Ref(3)]);
  });
});

describe("an instance with a serializer", () => {
  test("whose data cannot travel is refused by its path, and by that in the data", () => {
    const value = { list: [new Node({ deep: [() => 1] })] };
    expect(() => codec.encode(value, "value")).toThrow(NotEncodableError);
    expect(() => codec.encode(value, "value")).toThrow(
      "value.list[0] (as its serializer wrote it).deep[0] is a function",
    );
  });

  test("that contains itself is refused by its path; one in a cycle through an object arrives", () => {
    const own = new Node();
    own.data = { again: own };
    expect(() => codec.encode([{ own }], "value")).toThrow("value[0].own contains itself");
    const list: unknown[] & { node?: Node } = [];
    list.node = new Node([list]);
    expect(() => codec.encode({ list }, "value")).toThrow("value.list contains itself");
    const around: { node?: Node } = {};
    around.node = new Node([around]);
    const arrived = back(around);
    expect(arrived.node?.data).toEqual([arrived]);
    expect((arrived.node as Node & { data: unknown[] }).data[0]).toBe(arrived);
  });

  test("is one where it is there twice, in an error, too", () => {
    const node = new Node(5);
    const [first, error] = back([node, Object.assign(new Error("e"), { node })]);
    expect(first).toEqual(node);
    expect((error as { node?: unknown }).node).toBe(first);
  });
});

describe("errors", () => {
  test("never fail it: what cannot travel goes as text", () => {
    const error = Object.assign(new Error("e", { cause: () => 1 }), {
      run: () => 1,
      inside: { symbol: Symbol("s") },
    });
    const unreadable = { enumerable: true, get: () => expect.fail("no") };
    Object.defineProperty(error, "broken", unreadable);
    const [arrived] = back<unknown[]>([error]) as [Record<string, unknown>];
    expect(arrived).toBeInstanceOf(Error);
    expect(arrived["cause"]).toContain("[Function");
    expect(arrived["run"]).toContain("[Function");
    expect(arrived["inside"]).toContain("Symbol(s)");
    expect(arrived["broken"]).toContain("unreadable: no");
  });

  test("in a chain of ten thousand arrive as far as values may be nested", () => {
    let error = new Error("0");
    for (let depth = 1; depth < 10_000; depth++) error = new Error(`${depth}`, { cause: error });
    let arrived: unknown = back([error])[0];
    let depth = 0;
    for (; arrived instanceof Error; depth++) arrived = arrived.cause;
    expect(depth).toBeGreaterThan(100);
    expect(arrived).toContain("Error: ");
  });

  test("and their parts are one each, in cycles, too", () => {
    const inner = new TypeError("inner");
    const error: Error & Record<string, unknown> = new AggregateError([inner, 5, inner], "outer", {
      cause: inner,
    }) as never;
    Object.assign(error, { self: error, inner, byName: new Map([["inner", inner]]) });
    Object.assign(inner, { outer: error });
    const value = { inner, list: [error, error] };
    expect(difference(value, back(value))).toBeUndefined();
  });

  const thrownBack = (error: Error): Error =>
    codec.reviveFailure(codec.decodeFailure(codec.encodeFailure(error)));

  test.each([
    ["in a value", back],
    ["thrown", thrownBack],
  ])("%s, with a cause that is undefined have one, others have none", (_how, sent) => {
    const [one, none] = [sent(new Error("a", { cause: undefined })), sent(new Error("b"))];
    expect([Object.hasOwn(one, "cause"), Object.hasOwn(none, "cause")]).toEqual([true, false]);
  });

  test.each<[string, unknown, string]>([
    ["an object", { detail: 1 }, "[object Object]"],
    ["an object with a text of its own", { toString: () => "own text" }, "own text"],
    ["undefined", undefined, "undefined"],
    ["a number", 5, "5"],
    ["a symbol, which structured clone refuses", Symbol("why"), "Symbol(why)"],
    ["an object that has no text", Object.create(null), "[Object: null prototype] {}"],
  ])("with a message that is %s bring its text", (_what, message, text) => {
    const error = Object.assign(new Error(), { message });
    for (const sent of [back, thrownBack]) expect(sent(error).message).toBe(text);
  });
});

test("values that only look like what msgpackr knows stay what they are", () => {
  const odd: readonly object[] = [
    { constructor: { name: "Map" }, size: 3 },
    { toJSON: 5, constructor: null },
    Object.assign(Object.create(null) as object, { toJSON: "x", hasOwnProperty: 1 }),
    { __proto_: 1 },
    Object.assign([1], { constructor: 5, toJSON: 6 }),
  ];
  expect(difference(odd, back(odd))).toBeUndefined();
  expect(difference(odd, back([...odd]))).toBeUndefined();
});
