/**
 * Arguments and results of 4 to 64 KiB. Their packed bytes lie in memory that is used again after
 * the answer: nobody may get those of another call.
 */
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import * as ray from "@rayling/core";
import { sharesMemory } from "../fixtures/isolation.ts";
import { bytesOf, markOf, MiddleSized, survives } from "../fixtures/middle-sized.ts";

beforeAll(() => ray.init({ numCpus: 2, prewarm: 0 }));
afterAll(() => ray.shutdown());

/** Just below, at and above the steps of memory, and up to what travels beside the bytes. */
const sizes = [4000, 4090, 4096, 5000, 16_384, 40_000, 65_000, 65_536, 70_000];
const marks = Array.from({ length: 250 }, (_, index) => index);
const sizeOf = (mark: number): number => sizes[mark % sizes.length] ?? 0;

test("arguments arrive as they were, whatever others are under way", async () => {
  const actor = MiddleSized.remote();
  for (let round = 0; round < 4; round++) {
    const refs = marks.map((mark) => actor.mark.remote(bytesOf(mark, sizeOf(mark + round))));
    expect(await ray.get(refs)).toEqual(marks);
  }
});

test("arguments are those of the moment of the call", async () => {
  const actor = MiddleSized.remote();
  const bytes = new Uint8Array(16_384);
  const refs = marks.map((mark) => actor.mark.remote(bytes.fill(mark)));
  expect(await ray.get(refs)).toEqual(marks);
});

test("results arrive as they were, alone and in streams", async () => {
  const actor = MiddleSized.remote();
  const made = await ray.get(marks.map((mark) => actor.make.remote(mark, sizeOf(mark))));
  expect(made.map((one) => markOf(one))).toEqual(marks);
  expect(made.map((one) => one.length)).toEqual(marks.map(sizeOf));
  const items = actor.items.options({ numReturns: "streaming" }).remote(marks, 20_000);
  const found: unknown[] = [];
  for await (const item of items) found.push(markOf(await ray.get(item)));
  expect(found).toEqual(marks);
});

test("a call that is tried again has its own arguments", async () => {
  const actor = MiddleSized.remote();
  const again = actor.second.options({ maxTaskRetries: 1, retryExceptions: true });
  const refs = marks.flatMap((mark) => [
    again.remote(mark, bytesOf(mark, 16_384)),
    actor.mark.remote(bytesOf(250, 16_384)),
  ]);
  expect(await ray.get(refs)).toEqual(marks.flatMap((mark) => [mark, 250]));
});

describe.runIf(sharesMemory)("with cells that the test shares", () => {
  const cell = (value: number): Int32Array => new Int32Array(new SharedArrayBuffer(4)).fill(value);

  test("a call that is cancelled leaves the arguments of others alone", async () => {
    const actor = MiddleSized.options({ maxConcurrency: 400 }).remote();
    const release = cell(0);
    const refs = marks.map((mark) => actor.held.remote(bytesOf(mark, 16_384), release));
    for (const ref of refs.filter((_, index) => index % 2 === 0)) ray.cancel(ref);
    const later = marks.map((mark) => actor.mark.remote(bytesOf(mark, 16_384)));
    expect(await ray.get(later)).toEqual(marks);
    Atomics.store(release, 0, 1);
    Atomics.notify(release, 0);
    const ends = await Promise.allSettled(refs.map((ref) => ray.get(ref)));
    expect(ends.map((end) => (end.status === "fulfilled" ? end.value : "cancelled"))).toEqual(
      marks.map((mark) => (mark % 2 === 0 ? "cancelled" : mark)),
    );
  });

  test("a task whose worker dies has its own arguments in the next one", async () => {
    const deaths = cell(3);
    const task = survives.options({ maxRetries: 3 });
    const first = task.remote(bytesOf(7, 16_384), deaths);
    const others = marks.map((mark) => survives.remote(bytesOf(mark, 16_384), cell(0)));
    expect(await ray.get([first, ...others])).toEqual([7, ...marks]);
  });
});
