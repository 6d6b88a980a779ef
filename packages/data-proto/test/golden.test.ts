/**
 * Every case that verl's own DataProto answered, run through this package. One adapter per `fn`; a
 * `fn` without an adapter fails. Where this package differs on purpose, the case is in
 * `differences` with the reason and with what happens here instead.
 */
import { describe, expect, it } from "vitest";
import { goldenFile } from "../../../test/fixtures/golden.ts";
import {
  asTensor,
  AUTO_PADDING_KEY,
  DataProto,
  DataProtoError,
  foldBatchDim,
  padDataProtoToDivisor,
  tensor,
  toNested,
  unfoldBatchDim,
  unpadDataProto,
} from "@rayling/data-proto";
import type {
  DataProtoErrorCode,
  DataProtoItem,
  MetaInfo,
  Nested,
  RowIdxs,
  Tensor,
} from "@rayling/data-proto";

interface Spec {
  readonly batch: Readonly<Record<string, Nested>> | null;
  readonly non_tensor: Readonly<Record<string, readonly unknown[]>>;
  readonly meta: MetaInfo;
  readonly auto_padding?: boolean;
}

interface Case {
  readonly name: string;
  readonly fn: string;
  readonly inputs: {
    readonly data?: Spec;
    readonly other?: Spec;
    readonly spec?: Spec;
    readonly list?: readonly Spec[];
  };
  readonly params: Readonly<Record<string, unknown>>;
  readonly expected: {
    readonly error?: { readonly type: string; readonly message: string };
    readonly result?: unknown;
    readonly self_after?: unknown;
  };
}

interface Outcome {
  readonly result?: unknown;
  readonly selfAfter?: unknown;
}

const { cases } = goldenFile("data-proto.json") as { readonly cases: readonly Case[] };

const adapters: Readonly<Record<string, (input: Case) => Outcome>> = {
  "DataProto.chunk": ({ inputs, params }) => ({
    result: build(inputs.data)
      .chunk(params["chunks"] as number)
      .map(dump),
  }),
  "DataProto.split": ({ inputs, params }) => ({
    result: build(inputs.data)
      .split(params["split_size"] as number)
      .map(dump),
  }),
  "DataProto.concat": ({ inputs, params }) => {
    const list = inputs.list?.map(build) ?? build(inputs.data).chunk(params["chunks"] as number);
    return { result: dump(DataProto.concat(list)) };
  },
  "DataProto.union": ({ inputs }) => {
    const data = build(inputs.data);
    const result = data.union(build(inputs.other));
    expect(result).toBe(data);
    return { result: dump(result), selfAfter: dump(data) };
  },
  "DataProto.repeat": ({ inputs, params }) => ({
    result: dump(
      build(inputs.data).repeat(params["repeat_times"] as number, {
        interleave: params["interleave"] as boolean,
      }),
    ),
  }),
  "DataProto.sample_level_repeat": ({ inputs, params }) => ({
    result: dump(build(inputs.data).sampleLevelRepeat(params["repeat_times"] as number[])),
  }),
  "DataProto.unfold_column_chunks": ({ inputs, params }) => {
    const keys = (params["split_keys"] ?? undefined) as string[] | undefined;
    return {
      result: dump(build(inputs.data).unfoldColumnChunks(params["n_split"] as number, keys)),
    };
  },
  pad_dataproto_to_divisor: ({ inputs, params }) => {
    const { padded, padSize } = padDataProtoToDivisor(
      build(inputs.data),
      params["size_divisor"] as number,
    );
    return { result: [dump(padded), padSize] };
  },
  unpad_dataproto: ({ inputs, params }) => {
    const data = build(inputs.data);
    if (params["size_divisor"] === undefined)
      return { result: dump(unpadDataProto(data, params["pad_size"] as number)) };
    const { padded, padSize } = padDataProtoToDivisor(data, params["size_divisor"] as number);
    return { result: dump(unpadDataProto(padded, padSize)) };
  },
  "DataProto.padding": ({ inputs, params }) => {
    const data = build(inputs.data);
    // verl's default candidate is the empty string and means "last"; here it is spelt out.
    const candidate = params["padding_candidate"] === "" ? undefined : params["padding_candidate"];
    data.padding(params["padding_size"] as number, candidate as "last" | "first" | undefined);
    return { result: null, selfAfter: dump(data) };
  },
  "DataProto.reorder": ({ inputs, params }) => {
    const data = build(inputs.data);
    data.reorder(Int32Array.from(params["indices"] as number[]));
    return { result: null, selfAfter: dump(data) };
  },
  "DataProto.select_idxs": ({ name, inputs, params }) => ({
    result: dump(build(inputs.data).selectIdxs(indexKind(name, params["idxs"] as number[]))),
  }),
  "DataProto.slice": ({ inputs, params }) => {
    const [start, stop, step] = [params["start"], params["end"], params["step"]];
    const data = build(inputs.data);
    const result = dump(data.slice(start as number, stop as number, step as number));
    const slice = { start: start as number, stop: stop as number, step: step as number };
    expect(dump(data.index(slice))).toEqual(result);
    return { result };
  },
  "DataProto.__getitem__": ({ inputs, params }) => ({
    result: dumpItem(build(inputs.data).index(params["item"] as number)),
  }),
  "DataProto.select": ({ inputs, params }) => ({
    result: dump(build(inputs.data).select(keysOf(params))),
  }),
  "DataProto.pop": ({ inputs, params }) => {
    const data = build(inputs.data);
    return { result: dump(data.pop(keysOf(params))), selfAfter: dump(data) };
  },
  "DataProto.rename": ({ inputs, params }) => ({
    result: dump(
      build(inputs.data).rename(params["old_keys"] as string, params["new_keys"] as string),
    ),
  }),
  "DataProto.from_dict": ({ inputs }) => ({ result: dump(build(inputs.spec)) }),
  "DataProto.make_iterator": ({ inputs, params }) => ({
    result: [
      ...build(inputs.data).makeIterator(
        params["mini_batch_size"] as number,
        params["epochs"] as number,
      ),
    ].map(dump),
  }),
  fold_batch_dim: ({ inputs, params }) => {
    const folded = foldBatchDim(build(inputs.data), params["new_batch_size"] as number);
    const { batch, non_tensor } = dump(folded);
    return { result: { folded: { batch, non_tensor }, unfolded: dump(unfoldBatchDim(folded)) } };
  },
};

/** Cases in which this package does something else, why, and what. */
const differences: Readonly<Record<string, { readonly why: string; readonly result: unknown }>> = {
  "rename/['a', 'b']-to-['x', 'y']": {
    why: "verl hands a list to tensordict 0.10, which takes it for a nested key; renaming several keys is what the method is for",
    result: {
      batch: {
        x: [
          [0, 1],
          [2, 3],
        ],
        y: [0, 10],
      },
      non_tensor: { uid: ["u0", "u1"] },
      meta: { step: 3 },
      len: 2,
    },
  },
  "union/other-without-tensors-error": {
    why: "verl reads batch_size of None; a batch of values alone (reward extra info) is a batch like any other",
    result: {
      batch: {
        a: [
          [0, 1],
          [2, 3],
        ],
        b: [0, 10],
      },
      non_tensor: { uid: ["u0", "u1"], k: ["x", "y"] },
      meta: { step: 3 },
      len: 2,
    },
  },
};

/** The codes that stand for an error type of Python's. */
const codesOf: Readonly<Record<string, readonly DataProtoErrorCode[]>> = {
  AssertionError: ["BATCH_SIZE_MISMATCH", "CONFLICT", "KEY_NOT_FOUND", "UNEQUAL_CHUNK"],
  IndexError: ["BAD_INDEX", "BAD_ARGUMENT"],
  KeyError: ["KEY_NOT_FOUND"],
  RuntimeError: ["BAD_ARGUMENT"],
  TypeError: ["BAD_INDEX"],
  ValueError: ["BAD_ARGUMENT"],
};

describe("DataProto answers as verl's does", () => {
  it("has cases, and every difference names one of them", () => {
    expect(cases.length).toBeGreaterThan(100);
    const names = new Set(cases.map((input) => input.name));
    expect(Object.keys(differences).filter((name) => !names.has(name))).toEqual([]);
    expect(names.size).toBe(cases.length);
  });

  it.each(cases.map((input) => [`${input.fn} ${input.name}`, input] as const))("%s", (_, input) => {
    const adapter = adapters[input.fn];
    if (adapter === undefined) throw new Error(`no adapter for ${input.fn}`);
    const difference = differences[input.name];
    if (difference !== undefined) {
      expect(input.expected.error, "verl raises here").toBeDefined();
      const { result } = adapter(input);
      expect(result).toStrictEqual(difference.result);
      return;
    }
    if (input.expected.error !== undefined) {
      const codes = codesOf[input.expected.error.type] ?? [];
      expect(codes).toContain(failureOf(() => adapter(input)).code);
      return;
    }
    const outcome = adapter(input);
    expect(outcome.result).toEqual(input.expected.result);
    expect(keyOrder(outcome.result)).toEqual(keyOrder(input.expected.result));
    expect(outcome.selfAfter).toEqual(input.expected.self_after);
  });
});

function failureOf(run: () => unknown): DataProtoError {
  try {
    run();
  } catch (error) {
    if (error instanceof DataProtoError) return error;
    throw error;
  }
  throw new Error("verl raises here, this did not");
}

function build(spec: Spec | undefined): DataProto {
  if (spec === undefined) throw new Error("the case has no batch");
  const tensors = Object.entries(spec.batch ?? {}).map(([key, values]): [string, Tensor] => {
    const isWhole = [values].flat(9).every(Number.isInteger);
    return [key, tensor(values, isWhole ? "int32" : "float32")];
  });
  return DataProto.fromDict({
    tensors: Object.fromEntries(tensors),
    nonTensors: spec.non_tensor,
    metaInfo: { ...spec.meta },
    autoPadding: spec.auto_padding ?? false,
  });
}

function dump(data: DataProto): {
  batch: Record<string, Nested> | null;
  non_tensor: Record<string, readonly unknown[]>;
  meta: MetaInfo;
  len: number;
} {
  return {
    batch: data.batch && nestedOf(data.batch),
    non_tensor: { ...data.nonTensorBatch },
    meta: withoutMark(data.metaInfo),
    len: data.length,
  };
}

function dumpItem(item: DataProtoItem): unknown {
  return {
    item: true,
    batch: item.batch && nestedOf(item.batch),
    non_tensor: item.nonTensorBatch,
    meta: withoutMark(item.metaInfo),
  };
}

function nestedOf(tensors: Readonly<Record<string, Tensor>>): Record<string, Nested> {
  return Object.fromEntries(Object.entries(tensors).map(([key, value]) => [key, toNested(value)]));
}

/** The golden file says auto_padding apart from meta. */
function withoutMark(metaInfo: MetaInfo): MetaInfo {
  return Object.fromEntries(Object.entries(metaInfo).filter(([key]) => key !== AUTO_PADDING_KEY));
}

function indexKind(name: string, idxs: readonly number[] | readonly boolean[]): RowIdxs {
  const isMask = typeof idxs[0] === "boolean";
  if (name.includes("/list-")) return idxs;
  if (name.includes("/tensor-")) return tensor(idxs, isMask ? "bool" : "int32");
  if (!name.includes("/numpy-")) throw new Error(`unknown kind of index in ${name}`);
  return isMask
    ? asTensor(Uint8Array.from(idxs, Number), undefined, "bool")
    : Int32Array.from(idxs, Number);
}

function keysOf(params: Case["params"]): Parameters<DataProto["pop"]>[0] {
  const named = {
    batchKeys: params["batch_keys"],
    nonTensorBatchKeys: params["non_tensor_batch_keys"],
    metaInfoKeys: params["meta_info_keys"],
  };
  return Object.fromEntries(Object.entries(named).filter(([, keys]) => keys !== undefined));
}

/** The keys of every record inside, in order: toEqual looks past it. */
function keyOrder(value: unknown): unknown {
  if (typeof value !== "object" || value === null) return null;
  return Object.entries(value).map(([key, inner]) => [key, keyOrder(inner)]);
}
