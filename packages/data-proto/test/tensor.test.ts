import { describe, expect, it } from "vitest";
import {
  asTensor,
  concatRows,
  DataProtoError,
  gatherRows,
  isTensor,
  reshape,
  rowAt,
  rowCount,
  sliceRows,
  tensor,
  tensorEquals,
  toNested,
  zeros,
} from "@rayling/data-proto";
import type { Dtype, Nested, TensorData } from "@rayling/data-proto";

const fails = (run: () => unknown): { code: string; message: string } => {
  try {
    run();
  } catch (error) {
    if (error instanceof DataProtoError) return { code: error.code, message: error.message };
    throw error;
  }
  throw new Error("nothing was thrown");
};

describe("tensor", () => {
  const kept: readonly (readonly [Dtype, Nested, readonly number[], string])[] = [
    [
      "float32",
      [
        [0.5, -1],
        [2, Number.NaN],
      ],
      [2, 2],
      "Float32Array",
    ],
    ["float64", [0.1, 1e300], [2], "Float64Array"],
    ["int32", [[[1], [-2]]], [1, 2, 1], "Int32Array"],
    ["uint8", [0, 255], [2], "Uint8Array"],
    ["bool", [true, false], [2], "Uint8Array"],
    ["int32", [], [0], "Int32Array"],
    ["int32", [[], []], [2, 0], "Int32Array"],
    ["int32", 7, [], "Int32Array"],
    ["bool", true, [], "Uint8Array"],
  ];
  it.each(kept)("%s of %j has shape %j and gives its values back", (dtype, values, shape, kind) => {
    const made = tensor(values, dtype);
    expect(made.shape).toEqual(shape);
    expect(made.data.constructor.name).toBe(kind);
    expect(toNested(made)).toEqual(values);
    expect(isTensor(made)).toBe(true);
  });

  it("rounds to float32 and takes booleans as 0 and 1", () => {
    expect(toNested(tensor([0.1], "float32"))).toEqual([Math.fround(0.1)]);
    expect(toNested(tensor([true, false], "int32"))).toEqual([1, 0]);
    expect(toNested(tensor([1, 0], "bool"))).toEqual([true, false]);
  });

  const refused: readonly (readonly [Dtype, unknown, string, string])[] = [
    ["int32", [2 ** 31], "BAD_VALUE", "2147483648 is not a value of dtype int32"],
    ["int32", [0.5], "BAD_VALUE", "0.5"],
    ["int32", [Number.NaN], "BAD_VALUE", "NaN"],
    ["uint8", [256], "BAD_VALUE", "256"],
    ["uint8", [-1], "BAD_VALUE", "-1"],
    ["bool", [2], "BAD_VALUE", "2"],
    ["float32", ["1"], "BAD_VALUE", '"1"'],
    ["float32", [null], "BAD_VALUE", "null"],
    ["float32", [1n], "BAD_VALUE", "1n"],
    ["float32", [[1], [2, 3]], "BAD_SHAPE", "an array of length 2"],
    ["float32", [[1], 2], "BAD_SHAPE", "has 2"],
    ["float32", [1, [2]], "BAD_SHAPE", "an array of length 1"],
  ];
  it.each(refused)("%s refuses %s with %s, naming %s", (dtype, values, code, culprit) => {
    const failure = fails(() => tensor(values as Nested, dtype));
    expect(failure.code).toBe(code);
    expect(failure.message).toContain(culprit);
  });
});

describe("a dtype or a shape that there is not", () => {
  const dtypes = "dtype must be one of float32, float64, int32, uint8, bool, got";
  const int64 = "int64" as Dtype;
  it.each([
    [() => tensor([1], int64), "BAD_DTYPE", `${dtypes} "int64"; int64 is held as int32 here`],
    [() => tensor([1], undefined as never), "BAD_DTYPE", `${dtypes} undefined`],
    [() => zeros([1], "toString" as Dtype), "BAD_DTYPE", `${dtypes} "toString"`],
    [() => asTensor(Int32Array.of(1), [1], int64), "BAD_DTYPE", `${dtypes} "int64"`],
    [() => asTensor(Int32Array.of(1), 1 as never), "BAD_SHAPE", "an array of sizes, got 1"],
    [() => zeros([2, -1], "bool"), "BAD_SHAPE", "an array of sizes, got [2, -1]"],
    [() => reshape(zeros([6], "bool"), [-2, -3]), "BAD_SHAPE", "an array of sizes, got [-2, -3]"],
  ])("is refused: %s", (make, code, message) => {
    const failure = fails(make);
    expect(failure.code).toBe(code);
    expect(failure.message).toContain(message);
  });
});

describe("asTensor", () => {
  it("wraps without a copy, one dimension and the dtype of the array unless told otherwise", () => {
    const data = Float32Array.of(1, 2, 3, 4);
    expect(asTensor(data)).toEqual({ dtype: "float32", shape: [4], data });
    expect(asTensor(data, [2, 2]).data).toBe(data);
    expect(asTensor(Uint8Array.of(1, 0)).dtype).toBe("uint8");
    expect(asTensor(Uint8Array.of(1, 0), [2], "bool").dtype).toBe("bool");
  });

  it("keeps its shape when the caller's array changes", () => {
    const shape = [2];
    const made = asTensor(Int32Array.of(1, 2), shape);
    shape[0] = 9;
    expect(made.shape).toEqual([2]);
  });

  it("accepts data on shared memory", () => {
    const shared = new Int32Array(new SharedArrayBuffer(8));
    shared.set([5, 6]);
    expect(tensorEquals(asTensor(shared), tensor([5, 6], "int32"))).toBe(true);
  });

  it.each([
    [Float32Array.of(1, 2, 3), [2, 2], undefined, "BAD_SHAPE", "needs 4 elements, data has 3"],
    [Float32Array.of(1, 2), [-2], undefined, "BAD_SHAPE", "[-2]"],
    [Float32Array.of(1), [1], "int32", "BAD_DTYPE", "Int32Array"],
    [Uint8Array.of(2), [1], "bool", "BAD_VALUE", "2 is not a value of dtype bool"],
    [BigInt64Array.of(1n), [1], undefined, "BAD_DTYPE", "int64 is held as int32"],
    [[1, 2], [2], undefined, "BAD_DTYPE", "an array of length 2"],
  ] as const)("refuses %s as shape %j, dtype %s: %s", (data, shape, dtype, code, culprit) => {
    const failure = fails(() => asTensor(data as unknown as TensorData, shape, dtype));
    expect(failure.code).toBe(code);
    expect(failure.message).toContain(culprit);
  });
});

describe("rows", () => {
  const source = tensor(
    [
      [0, 1],
      [2, 3],
      [4, 5],
      [6, 7],
    ],
    "int32",
  );

  it("are views where they lie side by side", () => {
    const slice = sliceRows(source, 1, 3);
    expect(toNested(slice)).toEqual([
      [2, 3],
      [4, 5],
    ]);
    expect(slice.data.buffer).toBe(source.data.buffer);
    const row = rowAt(source, -1);
    expect(toNested(row)).toEqual([6, 7]);
    expect(row.shape).toEqual([2]);
    expect(row.data.buffer).toBe(source.data.buffer);
    expect(sliceRows(slice, 1, 2).data.byteOffset).toBe(16);
    expect(sliceRows(source, 4, 4).shape).toEqual([0, 2]);
  });

  it.each([
    [
      [3, 0, 0],
      [
        [6, 7],
        [0, 1],
        [0, 1],
      ],
    ],
    [
      [1, 2, 3],
      [
        [2, 3],
        [4, 5],
        [6, 7],
      ],
    ],
    [
      [0, 1, 2, 3, 0, 1, 2, 3].slice(2, 7),
      [
        [4, 5],
        [6, 7],
        [0, 1],
        [2, 3],
        [4, 5],
      ],
    ],
    [
      [-1, 0],
      [
        [6, 7],
        [0, 1],
      ],
    ],
    [[], []],
  ])("gather %j", (indices, expected) => {
    const gathered = gatherRows(source, indices);
    expect(toNested(gathered)).toEqual(expected);
    expect(gathered.shape).toEqual([indices.length, 2]);
    expect(gathered.data.buffer).not.toBe(source.data.buffer);
  });

  it("gather keeps dtype and works on rows of any size, none included", () => {
    expect(toNested(gatherRows(tensor([true, false], "bool"), [1, 0, 1]))).toEqual([
      false,
      true,
      false,
    ]);
    expect(gatherRows(zeros([3, 0], "float32"), [2, 2]).shape).toEqual([2, 0]);
  });

  it("concatenate in order, empty ones too, into new memory", () => {
    const joined = concatRows([
      sliceRows(source, 2, 4),
      sliceRows(source, 0, 0),
      sliceRows(source, 0, 1),
    ]);
    expect(toNested(joined)).toEqual([
      [4, 5],
      [6, 7],
      [0, 1],
    ]);
    expect(concatRows([source]).data).not.toBe(source.data);
  });

  it.each([
    ["a run past the end", () => gatherRows(source, [2, 3, 4]), "BAD_INDEX", "index 4"],
    [
      "an index past the end",
      () => gatherRows(source, [4]),
      "BAD_INDEX",
      "index 4 is out of bounds for 4 rows",
    ],
    ["an index past the start", () => rowAt(source, -5), "BAD_INDEX", "-5"],
    ["a broken index", () => gatherRows(source, [0.5]), "BAD_INDEX", "0.5"],
    ["a range past the end", () => sliceRows(source, 3, 5), "BAD_INDEX", "3..5"],
    ["a range backwards", () => sliceRows(source, 3, 2), "BAD_INDEX", "3..2"],
    ["no rows to have", () => rowCount(tensor(1, "int32")), "BAD_SHAPE", "without dimensions"],
    ["mixed dtypes", () => concatRows([source, zeros([1, 2], "float32")]), "BAD_DTYPE", "float32"],
    ["mixed row shapes", () => concatRows([source, zeros([1, 3], "int32")]), "BAD_SHAPE", "[3]"],
    ["mixed dimensions", () => concatRows([source, zeros([1], "int32")]), "BAD_SHAPE", "[]"],
    ["nothing to concatenate", () => concatRows([]), "BAD_ARGUMENT", "none"],
    ["another element count", () => reshape(source, [3, 3]), "BAD_SHAPE", "[3, 3]"],
  ] as const)("refuse %s", (_, run, code, culprit) => {
    const failure = fails(run);
    expect(failure.code).toBe(code);
    expect(failure.message).toContain(culprit);
  });

  it("reshape shares memory", () => {
    const seen = reshape(source, [2, 4]);
    expect(toNested(seen)).toEqual([
      [0, 1, 2, 3],
      [4, 5, 6, 7],
    ]);
    expect(seen.data).toBe(source.data);
  });
});

describe("tensorEquals", () => {
  const one = tensor([1, 0], "float32");
  it.each([
    ["equal values", tensor([1, 0], "float32"), true],
    ["a view of equal values", sliceRows(tensor([9, 1, 0], "float32"), 1, 3), true],
    ["another value", tensor([1, 2], "float32"), false],
    ["another sign of zero", tensor([1, -0], "float32"), false],
    ["another dtype", tensor([1, 0], "float64"), false],
    ["another shape", tensor([[1, 0]], "float32"), false],
    ["another length", tensor([1], "float32"), false],
    ["no rows of another size", zeros([0, 2], "float32"), false],
  ])("%s", (_, other, expected) => {
    expect(tensorEquals(one, other)).toBe(expected);
  });

  it("the same elements in other rows are not equal", () => {
    expect(tensorEquals(tensor([[1, 2]], "int32"), tensor([[1], [2]], "int32"))).toBe(false);
  });

  it("bool is not uint8 although both hold bytes", () => {
    expect(tensorEquals(tensor([1], "bool"), tensor([1], "uint8"))).toBe(false);
  });

  it("NaN equals NaN", () => {
    expect(tensorEquals(tensor([Number.NaN], "float32"), tensor([Number.NaN], "float32"))).toBe(
      true,
    );
  });
});

describe("isTensor", () => {
  it.each([
    ["null", null],
    ["a typed array", Float32Array.of(1)],
    ["an unknown dtype", { dtype: "int64", shape: [1], data: BigInt64Array.of(1n) }],
    [
      "a name of Object.prototype as dtype",
      { dtype: "toString", shape: [1], data: Float32Array.of(1) },
    ],
    ["data of another kind", { dtype: "int32", shape: [1], data: [1] }],
    ["a shape that does not fit", { dtype: "int32", shape: [2], data: Int32Array.of(1) }],
    ["a shape of strings", { dtype: "int32", shape: ["1"], data: Int32Array.of(1) }],
  ])("refuses %s", (_, value) => {
    expect(isTensor(value)).toBe(false);
  });
});
