/**
 * What the golden cases do not cover: sharing, failure without damage, values of JavaScript, and
 * every deliberate difference from verl.
 */
import { describe, expect, it } from "vitest";
import {
  AUTO_PADDING_KEY,
  DataProto,
  DataProtoError,
  deepEqual,
  foldBatchDim,
  padDataProtoToDivisor,
  tensor,
  toNested,
  unfoldBatchDim,
  unpadDataProto,
  zeros,
} from "@rayling/data-proto";

function sample(rows = 4): DataProto {
  return DataProto.fromDict({
    tensors: {
      ids: tensor(
        Array.from({ length: rows }, (_, i) => [i, -i]),
        "int32",
      ),
      score: tensor(
        Array.from({ length: rows }, (_, i) => i / 2),
        "float32",
      ),
    },
    nonTensors: { uid: Array.from({ length: rows }, (_, i) => `u${i}`) },
    metaInfo: { step: 3 },
  });
}

const failure = (run: () => unknown): DataProtoError => {
  try {
    run();
  } catch (error) {
    if (error instanceof DataProtoError) return error;
    throw error;
  }
  throw new Error("nothing was thrown");
};

const uids = (data: DataProto): readonly unknown[] => data.nonTensorBatch["uid"] ?? [];

const cycleOfNaN = (): unknown => {
  const node: { next?: unknown; score: number } = { score: Number.NaN };
  node.next = { back: node };
  return node;
};

const deepArray = (end: number): unknown => {
  let value: unknown = end;
  for (let i = 0; i < 50_000; i++) value = [value];
  return value;
};

const zeroBatch = (...args: Parameters<typeof zeros>): DataProto =>
  DataProto.fromDict({ tensors: { a: zeros(...args) } });

const withMetrics = (metrics: unknown): DataProto =>
  DataProto.fromDict({ nonTensors: { a: [1] }, metaInfo: { metrics } });

const shuffledUids = (seed?: number): string[] =>
  [...sample(6).makeIterator(2, 3, { shuffle: true, ...(seed === undefined ? {} : { seed }) })].map(
    (part) => uids(part).join(),
  );

describe("a batch", () => {
  it("without columns is legal and has no rows", () => {
    const data = new DataProto();
    expect(data.length).toBe(0);
    expect(data.batch).toBeNull();
    expect(data.chunk(2).map((part) => part.length)).toEqual([0, 0]);
  });

  it("splits a single record by kind", () => {
    const data = DataProto.fromSingleDict(
      { a: zeros([2], "int32"), b: ["x", "y"] },
      { metaInfo: { m: 1 } },
    );
    expect(Object.keys(data.batch ?? {})).toEqual(["a"]);
    expect(data.nonTensorBatch).toEqual({ b: ["x", "y"] });
    expect(data.metaInfo).toEqual({ m: 1 });
    const error = failure(() => DataProto.fromSingleDict({ a: "text" }));
    expect(error).toMatchObject({ code: "BAD_VALUE", key: "a" });
  });

  it("does not alias the records it was made of, and leaves the caller's metaInfo unmarked", () => {
    const tensors = { a: zeros([1], "int32") };
    const metaInfo = {};
    const data = DataProto.fromDict({ tensors, metaInfo, autoPadding: true });
    if (data.batch !== null) data.batch["late"] = zeros([1], "int32");
    data.rename("a", "b");
    expect(Object.keys(tensors)).toEqual(["a"]);
    expect(metaInfo).toEqual({});
    expect(data.metaInfo).toEqual({ [AUTO_PADDING_KEY]: true });
  });

  it("names both columns when their rows differ", () => {
    const error = failure(() =>
      DataProto.fromDict({ tensors: { a: zeros([2, 5], "int32") }, nonTensors: { uid: ["x"] } }),
    );
    expect(error).toMatchObject({
      code: "BATCH_SIZE_MISMATCH",
      key: "uid",
      expected: 2,
      actual: 1,
    });
    expect(error.message).toContain('"a" has 2, "uid" has 1');
  });

  it.each([
    ["a tensor without dimensions", { tensors: { a: tensor(1, "int32") } }, "a"],
    ["a typed array for a tensor", { tensors: { a: Float32Array.of(1) } }, "a"],
    ["text for an array", { nonTensors: { b: "xy" } }, "b"],
    ["a typed array for an array", { nonTensors: { b: Int32Array.of(1) } }, "b"],
  ])("refuses %s", (_, dict, key) => {
    const error = failure(() =>
      DataProto.fromDict(dict as Parameters<typeof DataProto.fromDict>[0]),
    );
    expect(error).toMatchObject({ code: "BAD_VALUE", key });
  });

  const unknown: readonly (readonly [string, string, (given: never) => unknown])[] = [
    ["DataProto", "tensors", (given) => new DataProto(given)],
    ["DataProto.fromDict", "tensor", (given) => DataProto.fromDict(given)],
    ["DataProto.fromSingleDict", "autoPad", (given) => DataProto.fromSingleDict({}, given)],
    ["select", "batchKey", (given) => sample().select(given)],
    ["pop", "toString", (given) => sample().pop(given)],
    ["repeat", "interleav", (given) => sample().repeat(2, given)],
    ["makeIterator", "suffle", (given) => sample().makeIterator(2, 1, given)],
  ];
  it.each(unknown)("%s refuses a name that it does not have: %s", (where, key, make) => {
    const error = failure(() => make({ [key]: {} } as never));
    expect(error).toMatchObject({ code: "BAD_ARGUMENT", key });
    expect(error.message).toContain(`${where} has no option "${key}"; it has `);
  });

  it.each([
    [() => DataProto.fromDict({ tensors: [] as never }), "tensors", "record"],
    [() => DataProto.fromDict({ autoPadding: 1 as never }), "autoPadding", "boolean"],
    [() => sample().select({ batchKeys: "ids" as never }), "batchKeys", "list"],
    [() => sample().makeIterator(2, 1, { seed: "1" as never }), "seed", "number"],
  ])("an option of another kind is refused by name: %s", (make, key, expected) => {
    expect(failure(make)).toMatchObject({ code: "BAD_ARGUMENT", key, expected });
  });

  it("takes columns by assignment, and the next operation says if one does not fit", () => {
    const data = sample(2);
    if (data.batch !== null) data.batch["rewards"] = zeros([2, 3], "float32");
    expect(data.slice(0, 1).batch?.["rewards"]?.shape).toEqual([1, 3]);
    data.nonTensorBatch["late"] = [1];
    const operations: readonly (() => unknown)[] = [
      () => data.length,
      () => data.chunk(1),
      () => data.repeat(2),
      () => data.union(new DataProto()),
      () => data.toData(),
    ];
    for (const run of operations)
      expect(failure(run)).toMatchObject({ code: "BATCH_SIZE_MISMATCH", key: "late" });
  });

  it("keeps keys that are names of Object.prototype", () => {
    const nonTensors = Object.fromEntries([
      ["__proto__", [1, 2]],
      ["constructor", [3, 4]],
    ]);
    const data = DataProto.fromDict({ nonTensors });
    expect(Object.keys(data.repeat(2).nonTensorBatch)).toEqual(["__proto__", "constructor"]);
    expect(failure(() => data.pop({ nonTensorBatchKeys: ["toString"] })).code).toBe(
      "KEY_NOT_FOUND",
    );
    expect(
      Object.keys(data.select({ nonTensorBatchKeys: ["hasOwnProperty"] }).nonTensorBatch),
    ).toEqual([]);
  });
});

describe("sharing", () => {
  it("slices, chunks and splits are views and share metaInfo; gathers are copies", () => {
    const data = sample();
    const memory = data.batch?.["ids"]?.data.buffer;
    for (const view of [data.slice(1, 3), ...data.chunk(2), ...data.split(3)]) {
      expect(view.batch?.["ids"]?.data.buffer).toBe(memory);
      expect(view.metaInfo).toBe(data.metaInfo);
    }
    for (const copy of [data.slice(0, 4, 2), data.selectIdxs([0]), data.repeat(1)]) {
      expect(copy.batch?.["ids"]?.data.buffer).not.toBe(memory);
      expect(copy.metaInfo).toBe(data.metaInfo);
    }
  });

  it("in-place operations leave tensors and arrays they were given as they were", () => {
    const data = sample(3);
    const { batch, nonTensorBatch } = data.toData();
    const view = data.slice(0, 2);
    data.reorder([2, 1, 0]);
    data.padding(2, "first");
    expect(uids(data)).toEqual(["u2", "u1", "u0", "u2", "u2"]);
    expect(batch?.["score"] && toNested(batch["score"])).toEqual([0, 0.5, 1]);
    expect(nonTensorBatch["uid"]).toEqual(["u0", "u1", "u2"]);
    expect(uids(view)).toEqual(["u0", "u1"]);
  });

  it("select shares, deepcopy does not", () => {
    const data = DataProto.fromDict({
      tensors: { a: tensor([1], "int32") },
      nonTensors: { o: [{ x: 1 }] },
      metaInfo: { m: {} },
    });
    const [shared, copied] = [data.select(), data.select({ deepcopy: true })];
    expect(shared.batch?.["a"]).toBe(data.batch?.["a"]);
    expect(shared.nonTensorBatch["o"]?.[0]).toBe(data.nonTensorBatch["o"]?.[0]);
    expect(copied.toData()).toEqual(data.toData());
    expect(copied.batch?.["a"]?.data.buffer).not.toBe(data.batch?.["a"]?.data.buffer);
    expect(copied.nonTensorBatch["o"]?.[0]).not.toBe(data.nonTensorBatch["o"]?.[0]);
    expect(copied.metaInfo["m"]).not.toBe(data.metaInfo["m"]);
  });
});

describe("indexing", () => {
  it.each([
    ["a tensor mask", tensor([true, false, false, true], "bool"), ["u0", "u3"]],
    ["a tensor of uint8 is integers", tensor([3, 3], "uint8"), ["u3", "u3"]],
    ["a bare Uint8Array is integers", Uint8Array.of(1, 0), ["u1", "u0"]],
    ["an Int32Array", Int32Array.of(-1, 2), ["u3", "u2"]],
    ["a mask that picks nothing", [false, false, false, false], []],
    ["a slice from the end", { start: -3, stop: -1 }, ["u1", "u2"]],
    ["a slice past the ends", { start: -9, stop: 9, step: 3 }, ["u0", "u3"]],
    ["an empty slice object", {}, ["u0", "u1", "u2", "u3"]],
    ["an inverted slice with a step", { start: 3, stop: 1, step: 2 }, []],
  ])("%s", (_, item, expected) => {
    const picked = sample().index(item);
    expect(uids(picked)).toEqual(expected);
    expect(picked.batch?.["score"] && toNested(picked.batch["score"])).toEqual(
      expected.map((uid) => Number(uid.slice(1)) / 2),
    );
  });

  it.each([
    ["text", "ids", "BAD_INDEX", '"ids"'],
    ["null", null, "BAD_INDEX", "null"],
    ["an unknown record", { from: 1 }, "BAD_INDEX", "Object"],
    ["a float tensor row number", tensor([0.5], "float32"), "BAD_INDEX", "0.5"],
    ["two dimensions", tensor([[0]], "int32"), "BAD_INDEX", "[1, 1]"],
    ["booleans and numbers mixed", [true, false, 1, 2], "BAD_INDEX", "2"],
    ["numbers and booleans mixed", [1, true], "BAD_INDEX", "true"],
    ["a mask that is too long", [true, true, true, true, true], "BAD_INDEX", "length 5"],
    ["a broken number", 0.5, "BAD_INDEX", "0.5"],
    ["a broken slice start", { start: 0.5 }, "BAD_INDEX", "0.5"],
    ["a slice step of 0", { step: 0 }, "BAD_ARGUMENT", "got 0"],
  ])("refuses %s", (_, item, code, culprit) => {
    const error = failure(() => sample().index(item as number));
    expect(error.code).toBe(code);
    expect(error.message).toContain(culprit);
  });

  it("an item has tensors without the batch dimension, and shares metaInfo", () => {
    const data = sample();
    const item = data.item(-2);
    expect(item.batch?.["ids"]).toMatchObject({ dtype: "int32", shape: [2] });
    expect(item.batch?.["score"]).toMatchObject({ shape: [], data: Float32Array.of(1) });
    expect(item.nonTensorBatch).toEqual({ uid: "u2" });
    expect(item.metaInfo).toBe(data.metaInfo);
  });
});

describe("keys", () => {
  it("rename swaps two keys, whatever order an engine keeps them in", () => {
    const data = DataProto.fromDict({
      tensors: { b: tensor([1], "int32"), 1: tensor([2], "int32") },
    });
    data.rename(["b", "1"], ["1", "b"]);
    expect(data.batch?.["1"]?.data[0]).toBe(1);
    expect(data.batch?.["b"]?.data[0]).toBe(2);
  });

  it.each([
    ["a missing key", ["nope"], ["x"], "KEY_NOT_FOUND"],
    ["one key twice", ["ids", "ids"], ["x", "y"], "BAD_ARGUMENT"],
    ["two keys into one", ["ids", "score"], ["x", "x"], "BAD_ARGUMENT"],
    ["a number", 3, "x", "BAD_ARGUMENT"],
  ])("rename refuses %s and changes nothing", (_, oldKeys, newKeys, code) => {
    const data = sample();
    const before = data.toData();
    expect(failure(() => data.rename(oldKeys as string[], newKeys)).code).toBe(code);
    expect(data.toData()).toEqual(before);
  });

  it("pop of several keys with one missing changes nothing", () => {
    const data = sample();
    const keys = {
      batchKeys: ["ids"],
      nonTensorBatchKeys: ["uid"],
      metaInfoKeys: ["step", "nope"],
    };
    expect(failure(() => data.pop(keys))).toMatchObject({ code: "KEY_NOT_FOUND", key: "nope" });
    expect(data.toData()).toEqual(sample().toData());
  });

  it("a batch keeps its rows when all its tensors are popped, through repeat, chunk, concat and plain data", () => {
    const data = sample(2);
    data.pop({ batchKeys: ["ids", "score"], nonTensorBatchKeys: ["uid"] });
    expect(data.length).toBe(2);
    expect(data.repeat(3).length).toBe(6);
    expect(data.chunk(2).map((part) => part.length)).toEqual([1, 1]);
    expect(DataProto.concat([data, data]).length).toBe(4);
    expect(data.toData().batchSize).toBe(2);
    expect(DataProto.fromData(structuredClone(data.toData())).length).toBe(2);
    expect(failure(() => data.union(sample(3))).code).toBe("BATCH_SIZE_MISMATCH");
    expect(new DataProto().union(data).length).toBe(2);
    expect(data.union(sample(2)).length).toBe(2);
    data.nonTensorBatch = { uid: ["a"] };
    data.batch = {};
    expect(failure(() => data.length)).toMatchObject({
      code: "BATCH_SIZE_MISMATCH",
      expected: 2,
      actual: 1,
    });
  });

  it("select of tensors from a batch without tensors fails, of none does not", () => {
    const data = DataProto.fromDict({ nonTensors: { a: [1] } });
    expect(failure(() => data.select({ batchKeys: ["x"] }))).toMatchObject({
      code: "KEY_NOT_FOUND",
      key: "x",
    });
    expect(data.select({ batchKeys: [] }).length).toBe(1);
  });
});

describe("union", () => {
  it("takes equal values under one key: NaN is NaN, -0 is 0 in values, cycles end", () => {
    const data = DataProto.fromDict({
      nonTensors: { o: [cycleOfNaN(), [0]] },
      metaInfo: { m: Number.NaN },
    });
    data.union(
      DataProto.fromDict({ nonTensors: { o: [cycleOfNaN(), [-0]] }, metaInfo: { m: Number.NaN } }),
    );
    expect(data.length).toBe(2);
  });

  it.each([
    ["tensor", { tensors: { score: tensor([0, 9], "float32") } }, "score"],
    ["dtype", { tensors: { score: tensor([0, 0.5], "float64") } }, "score"],
    ["values", { nonTensors: { uid: ["u0", 1] } }, "uid"],
    ["metaInfo", { metaInfo: { step: "3" } }, "step"],
  ])("a conflicting %s names the key and changes nothing", (_, dict, key) => {
    const data = sample(2);
    const {
      tensors = {},
      nonTensors = {},
      metaInfo = {},
    }: Parameters<typeof DataProto.fromDict>[0] = dict;
    const other = DataProto.fromDict({
      tensors: { fresh: zeros([2], "int32"), ...tensors },
      nonTensors: { extra: [1, 2], ...nonTensors },
      metaInfo: { lr: 1, ...metaInfo },
    });
    expect(failure(() => data.union(other))).toMatchObject({ code: "CONFLICT", key });
    expect(data.toData()).toEqual(sample(2).toData());
  });

  it("joins tensors to values and metaInfo to either", () => {
    const data = DataProto.fromDict({ nonTensors: { k: [1, 2] } });
    expect(data.union(DataProto.fromDict({ nonTensors: { k: [1, 2] } })).batch).toBeNull();
    data.union(DataProto.fromDict({ tensors: { a: zeros([2], "int32") } }));
    data.union(DataProto.fromDict({ metaInfo: { m: 1 } }));
    expect(data.toData()).toEqual({
      batch: { a: zeros([2], "int32") },
      nonTensorBatch: { k: [1, 2] },
      metaInfo: { m: 1 },
    });
    expect(
      failure(() => data.union(DataProto.fromDict({ nonTensors: { n: [1] } }))).message,
    ).toContain("2 and 1 rows");
  });

  it("reaches slices through the metaInfo they share, as in verl", () => {
    const data = sample();
    const view = data.slice(0, 1);
    data.union(DataProto.fromDict({ metaInfo: { lr: 1 } }));
    expect(view.metaInfo).toEqual({ step: 3, lr: 1 });
  });
});

describe("deepEqual", () => {
  class Box {
    value: number;
    constructor(value: number) {
      this.value = value;
    }
  }
  it.each([
    [null, undefined, false],
    [1, "1", false],
    [[1, 2], [1, 2], true],
    [[1, 2], [1, 2, 3], false],
    [{ a: 1, b: undefined }, { a: 1 }, false],
    [{ a: undefined }, { b: undefined }, false],
    [{ a: 1, b: 2 }, { b: 2, a: 1 }, true],
    [[], {}, false],
    [Float32Array.of(1, Number.NaN), Float32Array.of(1, Number.NaN), true],
    [Float32Array.of(1), Float64Array.of(1), false],
    [Float32Array.of(1), [1], false],
    [new Map([["a", 1]]), new Map([["a", 1]]), true],
    [new Map([["a", 1]]), new Map([["a", 2]]), false],
    [new Date(5), new Date(6), false],
    [new Box(1), new Box(1), true],
    [new Box(1), { value: 1 }, false],
    [1n, 1n, true],
  ])("%o and %o: %s", (a, b, expected) => {
    expect(deepEqual(a, b)).toBe(expected);
    expect(deepEqual(b, a)).toBe(expected);
  });

  it("does not overflow the stack on a deep value", () => {
    expect(deepEqual(deepArray(1), deepArray(1))).toBe(true);
    expect(deepEqual(deepArray(1), deepArray(2))).toBe(false);
  });
});

describe("dividing and joining", () => {
  it("auto padding follows torch with tensors and numpy without", () => {
    const withTensors = DataProto.fromDict({
      tensors: { a: zeros([7], "int32") },
      autoPadding: true,
    });
    expect(withTensors.chunk(3).map((part) => part.length)).toEqual([3, 3, 1]);
    const values = DataProto.fromDict({
      nonTensors: { a: [1, 2, 3, 4, 5, 6, 7] },
      autoPadding: true,
    });
    expect(values.chunk(3).map((part) => part.length)).toEqual([3, 2, 2]);
    expect(values.chunk(9).map((part) => part.length)).toEqual([1, 1, 1, 1, 1, 1, 1, 0, 0]);
    expect(failure(() => withTensors.chunk(5)).message).toContain(
      "fill 4 chunks, 5 were asked for",
    );
  });

  it("padding rows come off again after a trip through chunks", () => {
    const data = sample(5);
    const { padded, padSize } = padDataProtoToDivisor(data, 4);
    const back = unpadDataProto(DataProto.concat(padded.chunk(4)), padSize);
    expect(back.toData()).toEqual(data.toData());
    expect(unpadDataProto(data, 0)).toBe(data);
    expect(padDataProtoToDivisor(data, 5).padded).toBe(data);
  });

  it("padding an empty batch to a divisor leaves it, in place it fails", () => {
    const empty = sample(0);
    expect(padDataProtoToDivisor(empty, 4)).toEqual({ padded: empty, padSize: 0 });
    expect(failure(() => empty.padding(1)).code).toBe("BAD_INDEX");
    expect(failure(() => unpadDataProto(empty, 1)).code).toBe("BAD_ARGUMENT");
  });

  it.each([
    ["a negative repeat", () => sample().repeat(-1)],
    ["a broken repeat", () => sample().repeat(1.5)],
    ["a negative count", () => sample(1).sampleLevelRepeat([-1])],
    ["counts in two dimensions", () => sample(1).sampleLevelRepeat(tensor([[1]], "int32"))],
    ["no chunks", () => sample().chunk(0)],
    ["negative padding", () => sample().padding(-1)],
    ["a divisor of 0", () => padDataProtoToDivisor(sample(), 0)],
    ["no groups", () => foldBatchDim(sample(), 0)],
    ["no batches", () => sample().makeIterator(0, 1)],
    ["an empty list", () => DataProto.concat([])],
  ])("%s is refused", (_, run) => {
    expect(failure(run).code).toBe("BAD_ARGUMENT");
  });

  it("sampleLevelRepeat takes a tensor or a typed array of counts", () => {
    expect(uids(sample(3).sampleLevelRepeat(tensor([0, 2, 1], "int32")))).toEqual([
      "u1",
      "u1",
      "u2",
    ]);
    expect(uids(sample(3).sampleLevelRepeat(Uint8Array.of(1, 0, 0)))).toEqual(["u0"]);
  });

  it("unfoldColumnChunks cuts values too, and repeats them where no split keys are named", () => {
    const data = DataProto.fromDict({
      tensors: { a: zeros([2, 4, 3], "int32") },
      nonTensors: {
        v: [
          [1, 2],
          [3, 4],
        ],
        uid: ["x", "y"],
      },
    });
    const cut = data.unfoldColumnChunks(2, ["a", "v"]);
    expect(cut.batch?.["a"]?.shape).toEqual([4, 2, 3]);
    expect(cut.nonTensorBatch).toEqual({ v: [[1], [2], [3], [4]], uid: ["x", "x", "y", "y"] });
    expect(data.unfoldColumnChunks(2).nonTensorBatch["uid"]).toEqual(["x", "x", "y", "y"]);
    expect(failure(() => data.unfoldColumnChunks(3, ["a"]))).toMatchObject({
      code: "UNEQUAL_CHUNK",
      key: "a",
      actual: 4,
    });
    expect(failure(() => data.unfoldColumnChunks(2, ["uid"]))).toMatchObject({
      code: "UNEQUAL_CHUNK",
      key: "uid",
    });
  });

  it.each([
    ["a tensor key too many", [{ a: 1 }, { a: 1, b: 1 }], "b"],
    ["a tensor key too few", [{ a: 1, b: 1 }, { a: 1 }], "b"],
  ])("concat refuses %s", (_, shapes, key) => {
    const list = shapes.map((shape) =>
      DataProto.fromDict({
        tensors: Object.fromEntries(Object.keys(shape).map((name) => [name, zeros([1], "int32")])),
      }),
    );
    expect(failure(() => DataProto.concat(list))).toMatchObject({ code: "KEY_NOT_FOUND", key });
  });

  it("concat names the column whose dtype or shape differs, and the batch that has no tensors", () => {
    expect(
      failure(() => DataProto.concat([zeroBatch([1], "int32"), zeroBatch([1], "float32")])),
    ).toMatchObject({
      code: "BAD_DTYPE",
      key: "a",
    });
    expect(
      failure(() => DataProto.concat([zeroBatch([1, 2], "int32"), zeroBatch([1, 3], "int32")])),
    ).toMatchObject({ code: "BAD_SHAPE", key: "a" });
    const values = DataProto.fromDict({ nonTensors: { a: [1] } });
    expect(failure(() => DataProto.concat([values, zeroBatch([1], "int32")])).message).toContain(
      "element 0 has no tensors",
    );
    expect(
      failure(() =>
        DataProto.concat([values, DataProto.fromDict({ nonTensors: { a: [1], b: [1] } })]),
      ),
    ).toMatchObject({ key: "b" });
  });

  it("concat merges metrics of all kinds, skips null, and refuses a key the first lacks", () => {
    const merged = DataProto.concat([
      withMetrics([{ loss: 1 }]),
      withMetrics(null),
      withMetrics({ loss: 2 }),
    ]);
    expect(merged.metaInfo).toEqual({ metrics: { loss: [1, 2] } });
    expect(DataProto.concat([withMetrics(null)]).metaInfo).toEqual({});
    expect(
      failure(() => DataProto.concat([withMetrics({ loss: 1 }), withMetrics({ kl: 2 })])),
    ).toMatchObject({
      code: "KEY_NOT_FOUND",
      key: "kl",
    });
    expect(failure(() => DataProto.concat([withMetrics(7)]))).toMatchObject({
      code: "BAD_VALUE",
      key: "metrics",
    });
  });

  it("folds and unfolds without changing its argument, three dimensions too", () => {
    const data = sample(8);
    const folded = foldBatchDim(data, 4);
    expect(data.toData()).toEqual(sample(8).toData());
    expect(folded.length).toBe(4);
    expect(folded.batch?.["ids"]?.shape).toEqual([4, 2, 2]);
    expect(unfoldBatchDim(foldBatchDim(folded, 2), 3).toData()).toEqual(data.toData());
    expect(failure(() => unfoldBatchDim(data))).toMatchObject({ code: "BAD_SHAPE", key: "score" });
    const values = DataProto.fromDict({ nonTensors: { uid: ["x"] } });
    expect(failure(() => unfoldBatchDim(values))).toMatchObject({ code: "BAD_SHAPE", key: "uid" });
  });
});

describe("makeIterator", () => {
  it("shuffles each epoch anew, every row once, rows together, the same for the same seed", () => {
    const seen = shuffledUids(1);
    expect(seen).toEqual(shuffledUids(1));
    expect(seen).not.toEqual(shuffledUids(2));
    const epochs = [seen.slice(0, 3), seen.slice(3, 6), seen.slice(6)].map((epoch) => epoch.join());
    expect(new Set(epochs).size).toBe(3);
    for (const epoch of epochs)
      expect(epoch.split(",").toSorted()).toEqual(["u0", "u1", "u2", "u3", "u4", "u5"]);
    for (const part of sample(6).makeIterator(3, 1, { shuffle: true, seed: 1 })) {
      const numbers = uids(part).map((uid) => Number(String(uid).slice(1)) / 2);
      expect(part.batch?.["score"] && toNested(part.batch["score"])).toEqual(numbers);
    }
  });

  it("keeps the order of a seed for good: a resumed run depends on it", () => {
    const orders = "u4,u1 u2,u3 u5,u0 u3,u4 u1,u0 u5,u2 u2,u4 u5,u3 u0,u1";
    expect(shuffledUids(7).join(" ")).toBe(orders);
  });

  it("shuffles without a seed, too", () => {
    expect(shuffledUids().join().split(",").toSorted()).toEqual([
      "u0",
      "u0",
      "u0",
      "u1",
      "u1",
      "u1",
      "u2",
      "u2",
      "u2",
      "u3",
      "u3",
      "u3",
      "u4",
      "u4",
      "u4",
      "u5",
      "u5",
      "u5",
    ]);
  });

  it("refuses at the call, not at the first batch, and shares metaInfo", () => {
    const data = sample(6);
    expect(failure(() => data.makeIterator(4, 1))).toMatchObject({
      code: "UNEQUAL_CHUNK",
      expected: 4,
      actual: 6,
    });
    const batches = data.makeIterator(6, 1);
    data.padding(1);
    expect([...batches].map((part) => part.length)).toEqual([6]);
    for (const part of sample(2).makeIterator(1, 1)) expect(part.metaInfo).toEqual({ step: 3 });
  });
});

describe("plain data", () => {
  it("survives a structured clone and is checked on the way back", () => {
    const data = sample().slice(1, 3);
    expect(DataProto.fromData(structuredClone(data.toData())).toData()).toEqual(data.toData());
  });

  it.each([
    ["null", null],
    ["a list", []],
    ["no metaInfo", { batch: null, nonTensorBatch: {} }],
    ["a batch that is a list", { batch: [], nonTensorBatch: {}, metaInfo: {} }],
    ["a batch of something else", { batch: { a: [1] }, nonTensorBatch: {}, metaInfo: {} }],
    ["values that are no list", { batch: null, nonTensorBatch: { a: 1 }, metaInfo: {} }],
  ])("refuses %s", (_, plain) => {
    expect(failure(() => DataProto.fromData(plain)).code).toBe("BAD_VALUE");
  });

  it("refuses a batchSize that is no count", () => {
    expect(
      failure(() =>
        DataProto.fromData({ batch: {}, nonTensorBatch: {}, metaInfo: {}, batchSize: "2" }),
      ).code,
    ).toBe("BAD_ARGUMENT");
  });
});
