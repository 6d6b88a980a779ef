/** Batches of prompts: each epoch has every row once, orders come from the seed, and a position that is put back goes on with what comes next. */

import { describe, expect, test } from "vitest";
import { DatasetError, PromptDataset, PromptLoader, TrainerInputError } from "../../src/index.ts";
import type { LoaderPosition, PromptBatch, PromptLoaderOptions } from "../../src/index.ts";
import { rowsOf } from "./rows.ts";

const dataset = await PromptDataset.fromRows(rowsOf(23));

const indices = ({ rows }: PromptBatch): number[] => rows.map(({ index }) => index);
const loaderOf = (options: Partial<PromptLoaderOptions> = {}): PromptLoader =>
  new PromptLoader(dataset, { batchSize: 5, seed: 7, ...options });
const batchesOf = (loader: PromptLoader, epochs: number): PromptBatch[] =>
  Array.from({ length: epochs * loader.batchesPerEpoch }, (_, number) => loader.batch(number));

describe("an epoch", () => {
  test("has each row once at most, and those that fill no batch in another epoch", () => {
    const loader = loaderOf();
    expect(loader.batchesPerEpoch).toBe(4);
    const epochs = Map.groupBy(batchesOf(loader, 40), ({ epoch }) => epoch);
    expect([...epochs.keys()]).toEqual(Array.from({ length: 40 }, (_, epoch) => epoch));
    const seen = new Set<number>();
    for (const batches of epochs.values()) {
      expect(batches.map(({ batch }) => batch)).toEqual([0, 1, 2, 3]);
      const rows = batches.flatMap(indices);
      expect(new Set(rows).size).toBe(20);
      rows.forEach((row) => seen.add(row));
    }
    expect(seen.size).toBe(23);
  });

  test("has another order each time, the same in each run, another for another seed", () => {
    const orders = (seed: number): string[] => {
      const epochs = Map.groupBy(batchesOf(loaderOf({ seed }), 3), ({ epoch }) => epoch);
      return [...epochs.values()].map((batches) => batches.flatMap(indices).join());
    };
    expect(new Set(orders(7)).size).toBe(3);
    expect(orders(7)).toEqual(orders(7));
    expect(new Set([...orders(7), ...orders(8)]).size).toBe(6);
  });

  test("is the order of the file without shuffle, with the rest of it without dropLast", () => {
    const loader = loaderOf({ shuffle: false, dropLast: false });
    const batches = batchesOf(loader, 1).map(indices);
    expect(batches.flat()).toEqual(Array.from({ length: 23 }, (_, row) => row));
    expect(batches.map((rows) => rows.length)).toEqual([5, 5, 5, 5, 3]);
  });

  test("is one batch where a batch is all", () => {
    const loader = loaderOf({ batchSize: "all" });
    expect(loader.batchesPerEpoch).toBe(1);
    expect(loader.batch(3)).toMatchObject({ number: 3, epoch: 3, batch: 0 });
    expect(new Set(indices(loader.batch(3))).size).toBe(23);
  });

  test("leaves nothing to chance: each place is reached by each row about equally often", () => {
    const counts = new Uint32Array(23 * 23);
    for (const batch of batchesOf(loaderOf({ batchSize: 23 }), 4600)) {
      indices(batch).forEach((row, place) => {
        counts[place * 23 + row] = (counts[place * 23 + row] ?? 0) + 1;
      });
    }
    // 200 expected in each of 529 cells; chi-square with 484 degrees of freedom lies between these but for one seed in a million.
    const chiSquare = counts.reduce((sum, count) => sum + (count - 200) ** 2 / 200, 0);
    expect(chiSquare).toBeLessThan(640);
    expect(chiSquare).toBeGreaterThan(350);
  });
});

test("uids tell seed, epoch, batch and row, and are never the same", () => {
  const batches = batchesOf(loaderOf(), 3);
  expect(batches[5]?.uids).toEqual(["7:1:1:0", "7:1:1:1", "7:1:1:2", "7:1:1:3", "7:1:1:4"]);
  const all = batches.flatMap(({ uids }) => uids);
  expect(new Set(all).size).toBe(60);
});

describe("a batch", () => {
  test("is the same one under its number, in whatever order they are asked for", () => {
    const straight = batchesOf(loaderOf(), 3);
    const loader = loaderOf();
    expect(straight.toReversed().map(({ number }) => loader.batch(number))).toEqual(
      straight.toReversed(),
    );
  });

  test.each([-1, 0.5, Number.NaN])("has no number %d", (number) => {
    expect(() => loaderOf().batch(number)).toThrow(TrainerInputError);
  });
});

describe("a position", () => {
  test("that went through JSON is that of the same batch in another run", () => {
    for (let number = 0; number < 12; number++) {
      const position = loaderOf().positionOf(number);
      expect(position).toMatchObject({ epoch: Math.floor(number / 4), batch: number % 4 });
      const kept = JSON.parse(JSON.stringify(position)) as LoaderPosition;
      expect(loaderOf().numberOf(kept)).toBe(number);
    }
  });

  test.each([
    [{ batchSize: 6 }, /batchSize is 5 here and was 6 there \(data\.train_batch_size\)/],
    [{ seed: 8 }, /seed is 7 here and was 8 there \(data\.seed, or rayling\.seed\)/],
    [{ shuffle: false }, /shuffle/],
    [{ dropLast: false }, /dropLast/],
    [
      { fingerprint: "x" },
      /the data are others: their fingerprint is \w{64} here and was x there \(data\.train_files/,
    ],
    [{ epoch: -1 }, /must be a whole number from 0, is -1/],
    [{ batch: 4 }, /is 4, and an epoch has 4 batches/],
    [{ batch: 0.5 }, /must be a whole number from 0, is 0\.5/],
  ])("of something else (%j) is refused", (change, message) => {
    const loader = loaderOf();
    const position = { ...loader.positionOf(0), ...change };
    expect(() => loader.numberOf(position)).toThrow(TrainerInputError);
    expect(() => loader.numberOf(position)).toThrow(message);
  });
});

describe("a loader", () => {
  test("of a data set that fills no batch is refused", async () => {
    expect(() => loaderOf({ batchSize: 24 })).toThrow(DatasetError);
    expect(() => loaderOf({ batchSize: 24 })).toThrow(
      "the data set has 23 rows, which fill no batch of 24",
    );
    const filtered = await PromptDataset.fromRows(rowsOf(3), {
      maxPromptLength: 1,
      promptLengths: (prompts) => prompts.map((_, at) => at),
      filterOverlongPrompts: true,
    });
    expect(() => new PromptLoader(filtered, { batchSize: 3 })).toThrow(
      "2 rows (1 were left out as overlong prompts), which fill no batch of 3",
    );
    const empty = await PromptDataset.fromRows([]);
    expect(() => new PromptLoader(empty, { batchSize: "all" })).toThrow("the data set has no rows");
  });

  test("of fewer rows than a batch has one smaller batch without dropLast", () => {
    const loader = loaderOf({ batchSize: 24, dropLast: false });
    expect(batchesOf(loader, 1).map(({ rows }) => rows.length)).toEqual([23]);
  });

  test.each([
    [{ batchSize: 0 }, "batchSize"],
    [{ batchSize: 1.5 }, "batchSize"],
    [{ seed: 0.5 }, "seed"],
    [{ dropLst: false } as Partial<PromptLoaderOptions>, "dropLst"],
  ])("with %j is refused", (options, input) => {
    expect(() => loaderOf(options)).toThrow(expect.objectContaining({ input }) as Error);
  });
});
