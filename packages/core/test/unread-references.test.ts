import { afterEach, beforeEach, describe, expect, test } from "vitest";
import * as ray from "@rayling/core";
import { Mailbox } from "./fixtures/mailbox.ts";
import { currentCaller } from "./fixtures/runtime.ts";

beforeEach(() => ray.init({ numCpus: 2, prewarm: 0 }));
afterEach(() => ray.shutdown());

const exported = (): number => currentCaller()?.objects.store.exportedCount ?? -1;

/** Waits until `count` is as low as that; each answer may bring what was told before it. */
async function falls(count: () => Promise<number>, most: number): Promise<void> {
  for (let round = 0; (await count()) > most; round++) {
    if (round === 200) expect.fail(`${await count()} objects are still held, not ${most}`);
  }
}

/** Hands a ref of one actor to another, which is killed before it looks at it. */
async function handToTheDead(
  maker: ReturnType<typeof Mailbox.remote>,
  busy: ReturnType<typeof Mailbox.remote>,
): Promise<void> {
  busy.stay.remote();
  const unread = busy.take.remote(await ray.get(maker.make.remote()));
  expect(await ray.get(maker.exported.remote())).toBe(1);
  await ray.kill(busy);
  // A matcher would keep the error, and that the call by its stack.
  const name = await ray.get(unread).catch((error: unknown) => (error as Error).name);
  expect(name).toBe("ActorDiedError");
}

/** How many items come of a stream whose actor ends in the middle; the first ones are made twice. */
async function repeated(mailbox: ReturnType<typeof Mailbox.remote>): Promise<number> {
  const { parcels } = mailbox;
  const generator = parcels.options({ generatorBackpressureNumObjects: 2 }).remote(5);
  await generator.next();
  await generator.next();
  // It is not retried.
  const exit = mailbox.exit.options({ maxTaskRetries: 0 }).remote();
  await expect(ray.get(exit)).rejects.toThrow(ray.ActorUnavailableError);
  let count = 2;
  for await (const _ of generator) count += 1;
  return count;
}

describe.each(["thread", "process"] as const)("in a %s of its own", (isolation) => {
  const Isolated = Mailbox.options({ isolation });

  test.each([
    ["ref", () => ray.put("unread")],
    ["handle", () => Mailbox.remote()],
  ])("a %s in a call that is cancelled in the mailbox is let go", async (_kind, make) => {
    const mailbox = Isolated.options({ maxConcurrency: 1 }).remote();
    const look = mailbox.exported.options({ concurrencyGroup: "look" });
    await ray.get(look.remote());
    const before = exported();
    mailbox.stay.remote();
    const unread = mailbox.take.remote({ inside: make() });
    const asArgument = mailbox.take.remote(ray.put({ inside: make() }));
    expect(exported()).toBe(before + 2);
    for (const call of [unread, asArgument]) ray.cancel(call);
    await expect(ray.get(unread)).rejects.toThrow(ray.TaskCancelledError);
    await expect(ray.get(asArgument)).rejects.toThrow(ray.TaskCancelledError);
    await falls(async () => {
      await ray.get(look.remote());
      return exported();
    }, before);
  });

  test.each(["make", "makeTwo"] as const)(
    "refs in the result of a call that was cancelled too late are let go (%s)",
    async (method) => {
      const mailbox = Isolated.remote();
      await ray.get(mailbox.ready.remote());
      const result =
        method === "make"
          ? mailbox.make.remote()
          : mailbox.makeTwo.options({ numReturns: 2 }).remote()[0];
      // It has run when the cancellation, which comes in the same batch, has its turn.
      ray.cancel(result);
      await expect(ray.get(result)).rejects.toThrow(ray.TaskCancelledError);
      await falls(() => ray.get(mailbox.exported.remote()), 0);
    },
  );

  test("refs in items that a retried stream repeats are let go", async () => {
    const mailbox = Isolated.options({ maxRestarts: 1, maxTaskRetries: 1 }).remote();
    expect(await repeated(mailbox)).toBe(5);
    await falls(async () => {
      globalThis.gc?.();
      return ray.get(mailbox.exported.remote());
    }, 0);
  });

  test("a ref of an actor that is on its way to another is let go when that dies, though the two never spoke", async () => {
    const [maker, busy] = [Isolated.remote(), Isolated.options({ maxConcurrency: 1 }).remote()];
    await ray.get([maker.ready.remote(), busy.ready.remote()]);
    await handToTheDead(maker, busy);
    await falls(async () => {
      globalThis.gc?.();
      return ray.get(maker.exported.remote());
    }, 0);
  });

  test("a ref among the arguments of an actor that is killed before it lives is let go", async () => {
    const mailbox = Isolated.remote();
    await ray.get(mailbox.abandon.remote());
    await falls(async () => {
      await ray.get(mailbox.collect.remote());
      globalThis.gc?.();
      return ray.get(mailbox.exported.remote());
    }, 0);
  });
});

test("a ref in a call that waits in an actor of a shared thread is let go when that is killed", async () => {
  const Shared = Mailbox.options({ isolation: "shared", maxConcurrency: 1 });
  const [victim, other] = [Shared.remote(), Shared.remote()];
  await ray.get([victim.ready.remote(), other.ready.remote()]);
  const before = exported();
  victim.stay.remote();
  const waiting = victim.take.remote({ inside: ray.put("unread") });
  await ray.get(other.ready.remote());
  await ray.kill(victim);
  // This one finds nobody there.
  const late = victim.take.remote({ inside: ray.put("unread") });
  for (const call of [waiting, late]) {
    await expect(ray.get(call)).rejects.toThrow(ray.ActorDiedError);
  }
  await falls(async () => {
    await ray.get(other.ready.remote());
    return exported();
  }, before);
});
