import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setImmediate as turn } from "node:timers/promises";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import * as ray from "@rayling/core";
import { Holder, Keeper, putInOneJob } from "../fixtures/reused-memory.ts";

/** 2 MiB: memory of that size is used again where nobody was given it. */
const elements = 256 * 1024;

const MiB = 1024 * 1024;
const objectStoreMemory = 160 * MiB;

let spillDirectory: string;

beforeAll(async () => {
  spillDirectory = mkdtempSync(join(tmpdir(), "reused-memory-"));
  await ray.init({ numCpus: 2, prewarm: 0, objectStoreMemory, spillDirectory });
});
afterAll(async () => {
  await ray.shutdown();
  rmSync(spillDirectory, { recursive: true, force: true });
});

describe("values that are put one after the other and dropped", () => {
  test("arrive whole at an actor in a process, which fetches them while others are put", async () => {
    await using keeper = Keeper.options({ isolation: "process" }).remote();
    const sums: ray.ObjectRef<number>[] = [];
    for (let mark = 1; mark <= 60; mark++) {
      sums.push(keeper.sum.remote(ray.put(new Float64Array(elements).fill(mark))));
      // Dropped at once, so that its memory is the next one's.
      ray.put(new Float64Array(elements).fill(-mark));
      if (mark % 4 === 0) await turn();
      if (mark % 20 === 0) await ray.get(sums.at(-1) as ray.ObjectRef<number>);
    }
    const expected = sums.map((_, index) => (index + 1) * elements);
    expect(await ray.get(sums)).toEqual(expected);
  });

  test("never change what an actor in a thread or the driver keeps of them", async () => {
    await using keeper = Keeper.remote();
    const mine: Float64Array[] = [];
    for (let mark = 1; mark <= 60; mark++) {
      const ref = ray.put(new Float64Array(elements).fill(mark));
      if (mark % 3 === 0) await ray.get(keeper.keep.remote(ref));
      else if (mark % 5 === 0) mine.push(await ray.get(ref));
      await turn();
    }
    const kept = await ray.get(keeper.marks.remote());
    expect(kept).toEqual(Array.from({ length: 20 }, (_, index) => [3 * (index + 1)]));
    const marks = mine.map((value) => [...new Set(value)]);
    expect(marks).toEqual([5, 10, 20, 25, 35, 40, 50, 55].map((mark) => [mark]));
  });

  test("need no disk where a task puts more in one job than the store may hold", async () => {
    for (let task = 0; task < 2; task++) {
      const { files, kept } = await ray.get(putInOneJob.remote(50, 4 * MiB, spillDirectory));
      expect(kept).toEqual([[10], [20], [30], [40], [50]]);
      expect(files).toEqual([]);
    }
  });

  test.each(["thread", "shared"] as const)(
    "never change what an actor was created with (%s)",
    async (isolation) => {
      const holders = [1, 2, 3, 4].map((mark) => {
        const value = new Float64Array(elements).fill(mark);
        const given = mark % 2 === 0 ? ray.put(value) : value;
        return Holder.options({ isolation, numCpus: 0 }).remote(given);
      });
      const marks = (): Promise<number[][]> => ray.get(holders.map((one) => one.marks.remote()));
      expect(await marks()).toEqual([[1], [2], [3], [4]]);
      for (let mark = 1; mark <= 150; mark++) {
        ray.put(new Float64Array(elements).fill(-mark));
        if (mark % 3 === 0) await turn();
      }
      expect(await marks()).toEqual([[1], [2], [3], [4]]);
      for (const one of holders) await ray.kill(one);
    },
  );
});
