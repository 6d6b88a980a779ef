import { afterAll, beforeAll, expect, test } from "vitest";
import * as ray from "@rayling/core";
import { currentCaller } from "./fixtures/runtime.ts";
import { Keeper } from "./fixtures/keeper.ts";

beforeAll(() => ray.init({ numCpus: 2, prewarm: 0 }));
afterAll(() => ray.shutdown());

test("a ref that an actor keeps stays readable when the driver has dropped it", async () => {
  const keeper = Keeper.remote();
  await ray.get(keeper.keep.remote({ ref: ray.put("kept") }));
  globalThis.gc?.();
  expect(await ray.get(keeper.read.remote())).toBe("kept");
});

test("a ref handed on by a borrower reaches its owner", async () => {
  const [first, second] = [Keeper.remote(), Keeper.remote()];
  await ray.get(first.keep.remote({ ref: ray.put("handed on") }));
  const given = await ray.get(first.give.remote());
  await ray.get(second.keep.remote(given));
  await ray.get(first.drop.remote());
  expect(await ray.get(second.read.remote())).toBe("handed on");
});

test("a ref made in one actor is read by another, directly and through the driver", async () => {
  const [maker, reader] = [Keeper.remote(), Keeper.remote()];
  const made = await ray.get(maker.make.remote("made inside"));
  expect(await ray.get(made.ref)).toBe("made inside");
  await ray.get(reader.keep.remote(made));
  expect(await ray.get(reader.read.remote())).toBe("made inside");
});

test("a ref comes home to its owner as the object it was", async () => {
  const keeper = Keeper.remote();
  const ref = ray.put({ home: true });
  await ray.get(keeper.keep.remote({ ref: ref as never }));
  const { ref: back } = await ray.get(keeper.give.remote());
  expect(back.id).toBe(ref.id);
  expect(await ray.get(back)).toEqual({ home: true });
});

test("a failed object fails whoever borrows it, with the same error", async () => {
  const keeper = Keeper.remote();
  const failed = keeper.fail.remote("lost cause");
  await ray.get(keeper.keep.remote({ ref: failed }));
  await expect(ray.get(keeper.read.remote())).rejects.toThrow("lost cause");
});

/** The owner is the host, and others may have objects there. */
const isAlone = process.env["RAYLING_ISOLATION"] !== "shared";

test.skipIf(!isAlone)("an object that everybody dropped is let go by its owner", async () => {
  const [maker, keeper] = [Keeper.remote(), Keeper.remote()];
  await ray.get(keeper.keep.remote(await ray.get(maker.make.remote("short life"))));
  expect(await ray.get(maker.exported.remote())).toBe(1);
  await ray.get(keeper.drop.remote());
  // The borrowers' collectors tell the owner; both are driven here, so that the wait is for an event.
  for (let round = 0; (await ray.get(maker.exported.remote())) > 0; round++) {
    if (round === 200) expect.fail("the object is still held");
    globalThis.gc?.();
    await ray.get(keeper.collect.remote());
  }
});

test.skipIf(!isAlone)("what was on its way to an actor that died is let go", async () => {
  const before = currentCaller()?.objects.store.exportedCount ?? -1;
  const keeper = Keeper.remote();
  const exit = keeper.exit.remote();
  const unread = Array.from({ length: 20 }, () => keeper.keep.remote({ ref: ray.put("unread") }));
  await expect(ray.get(exit)).rejects.toThrow(ray.ActorDiedError);
  for (const ref of unread) await expect(ray.get(ref)).rejects.toThrow(ray.ActorDiedError);
  // Refs of earlier tests may come back meanwhile, so there may be fewer.
  expect(currentCaller()?.objects.store.exportedCount).toBeLessThanOrEqual(before);
});
