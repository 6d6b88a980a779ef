/** Rows dealt out by their length: verl's own partitions (test/golden/seqlen-balance.json), orders, micro-batches, bad input. */
import {
  balanceBatch,
  balancedPartitions,
  greedyPartition,
  karmarkarKarp,
  microBatches,
  type PartitionOptions,
  seqlenMetrics,
  TrainerInputError,
  workloadOf,
} from "@rayling/trainer";
import { describe, expect, test } from "vitest";
import { goldenFile } from "../../../test/fixtures/golden.ts";

interface Trace {
  readonly cases: readonly {
    readonly fn: string;
    readonly seqlens: readonly number[];
    readonly k: number;
    readonly equal_size: boolean;
    readonly partitions?: readonly (readonly number[])[];
    readonly error?: string;
  }[];
  readonly log: readonly {
    readonly seqlens: readonly number[];
    readonly partitions: readonly (readonly number[])[];
    readonly metrics: Readonly<Record<string, number>>;
  }[];
  readonly workload: readonly { readonly seqlen: number; readonly workload: number }[];
}

const trace = goldenFile("seqlen-balance.json") as Trace;
const adapters: Readonly<
  Record<string, (workloads: readonly number[], options: PartitionOptions) => number[][]>
> = {
  karmarkar_karp: karmarkarKarp,
  greedy_partition: greedyPartition,
  get_seqlen_balanced_partitions: balancedPartitions,
};

test("every fn of seqlen-balance.json has an adapter", () => {
  const fns = new Set(trace.cases.map(({ fn }) => fn));
  expect([...fns].filter((fn) => !Object.hasOwn(adapters, fn))).toEqual([]);
});

test.each(trace.cases)("$fn of $seqlens into $k, of one size: $equal_size", (one) => {
  const run = (): number[][] =>
    (adapters[one.fn] as typeof karmarkarKarp)(one.seqlens, {
      parts: one.k,
      equalSize: one.equal_size,
    });
  if (one.error === undefined) expect(run()).toEqual(one.partitions);
  else expect(run).toThrow(TrainerInputError);
});

test.each(trace.log)("the metrics of $seqlens", ({ seqlens, partitions, metrics }) => {
  expect(seqlenMetrics(seqlens, partitions)).toEqual(metrics);
});

test.each(trace.workload)("$seqlen tokens are a workload of $workload", (one) => {
  expect(workloadOf(one.seqlen)).toBe(one.workload);
});

describe("a batch of two processes", () => {
  const tokens = [10, 200, 30, 40, 150, 60, 70, 80];

  test("gives both about as many tokens, and puts rows that take little at both ends", () => {
    const { order, metrics } = balanceBatch(tokens, { dpSize: 2 });
    expect([...order].toSorted((left, right) => left - right)).toEqual([0, 1, 2, 3, 4, 5, 6, 7]);
    const halves = [order.subarray(0, 4), order.subarray(4)];
    for (const half of halves) {
      const lengths = Array.from(half, (row) => tokens[row] as number);
      const largest = lengths.indexOf(Math.max(...lengths));
      expect([1, 2]).toContain(largest);
    }
    expect(metrics["global_seqlen/balanced_max"]).toBeLessThan(
      metrics["global_seqlen/max"] as number,
    );
  });

  test("keeps the rows of each mini-batch together", () => {
    const { order } = balanceBatch(tokens, { dpSize: 2, miniBatchSize: 4 });
    const miniBatchOf = (row: number): number => Math.floor(row / 4);
    for (const half of [order.subarray(0, 4), order.subarray(4)]) {
      expect(Array.from(half, miniBatchOf).filter((one) => one === 0)).toHaveLength(2);
    }
  });

  test("needs rows that divide", () => {
    expect(() => balanceBatch(tokens, { dpSize: 3 })).toThrow(TrainerInputError);
    expect(() => balanceBatch(tokens, { dpSize: 2, miniBatchSize: 3 })).toThrow(
      "mini-batches of 3",
    );
    expect(() => balanceBatch([], { dpSize: 1 })).toThrow(TrainerInputError);
  });
});

describe("micro-batches", () => {
  const tokens = [100, 20, 80, 60, 40, 10, 90, 50];

  test("are as few as their tokens allow, of about the same size, the smallest at both ends", () => {
    // By their sum 150 would do for three, but of rows that are balanced one has more.
    const batches = microBatches(tokens, { maxTokens: 160 });
    expect(batches).toHaveLength(3);
    expect(microBatches(tokens, { maxTokens: 150 })).toHaveLength(4);
    expect(batches.flat().toSorted((left, right) => left - right)).toEqual([
      0, 1, 2, 3, 4, 5, 6, 7,
    ]);
    const workloads = batches.map((rows) =>
      rows.reduce((sum, row) => sum + workloadOf(tokens[row] as number), 0),
    );
    expect(Math.max(...workloads)).toBe(workloads[1]);
  });

  test("are as many as a pipeline needs", () => {
    expect(microBatches(tokens, { maxTokens: 150, divisibleBy: 2 })).toHaveLength(4);
    expect(microBatches(tokens, { maxTokens: 500, minMicroBatches: 5 })).toHaveLength(5);
  });

  // verl 0.9.1 makes [[1], [0, 3], [2]] of it; 0.10.0.dev, [[0, 1], [2, 3]].
  test("are more, where as few as their tokens allow would be beyond the limit", () => {
    expect(microBatches([7, 7, 7, 1], { maxTokens: 12 })).toEqual([[1], [0, 3], [2]]);
    const four = microBatches([7, 7, 7, 1, 1], { maxTokens: 12, divisibleBy: 2 });
    expect(four).toHaveLength(4);
    expect(() => microBatches([7, 7, 7], { maxTokens: 12, divisibleBy: 2 })).toThrow(
      "3 rows cannot be 4 micro-batches, and fewer, by multiples of 2, have more than 12 tokens",
    );
  });

  test("take no row that is longer than they may be", () => {
    expect(() => microBatches(tokens, { maxTokens: 99 })).toThrow("row 0 has 100 tokens");
    expect(() => microBatches([1, 1], { maxTokens: 9, minMicroBatches: 3 })).toThrow(
      "3 parts need at least as many rows; there are 2",
    );
  });
});
