/** Calls and items leave while the thread that makes them is held, and before who makes them has ended. */
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import * as ray from "@rayling/core";
import { Log } from "../fixtures/conformance.ts";
import { sharesMemory } from "../fixtures/isolation.ts";
import { Holds, LastCalls } from "../fixtures/last-calls.ts";

beforeAll(() => ray.init({ numCpus: 2, prewarm: 0 }));
afterAll(() => ray.shutdown());

const cell = (): Int32Array => new Int32Array(new SharedArrayBuffer(4));

describe.each(["thread", "process"] as const)(
  "first calls of an actor that ends: %s",
  (isolation) => {
    test("by its own doing, in its hook, in a constructor that throws", async () => {
      const log = Log.remote();
      const Ends = LastCalls.options({ isolation });
      const ends = ["leave", "leaveLater", "__ray_terminate__"] as const;
      const actors = ends.map(() => Ends.remote());
      await ray.get(actors.map((actor) => actor.keep.remote(log)));
      const ended = actors.map((actor, at) => ray.get(actor[ends[at] ?? "leave"].remote()));
      const made = ray.get(Ends.remote(log).leave.remote());
      await Promise.all(
        [...ended, made].map((end) => expect(end).rejects.toThrow(ray.ActorDiedError)),
      );
      const all = ["constructor", "hook", "hook", "hook", "leave", "leave later"];
      const lines = async (): Promise<readonly string[]> =>
        (await ray.get(log.lines.remote())).map(String).toSorted();
      await expect.poll(lines).toEqual(all);
    });
  },
);

describe.skipIf(!sharesMemory)("a thread that is held", () => {
  test("by the driver: the call before that is at work meanwhile", async () => {
    const actor = Holds.remote();
    await ray.get(actor.ready.remote());
    const set = cell();
    const call = actor.set.remote(set);
    expect(Atomics.wait(set, 0, 0, 60_000)).not.toBe("timed-out");
    await ray.get(call);
  });

  test("by a method: each call before that arrives meanwhile", async () => {
    const [actor, other] = [Holds.remote(), Holds.remote()];
    await ray.get(actor.reach.remote(other));
    await ray.get(actor.tell.remote(other, [cell()]));
  });

  test("by a generator: the items before that arrive meanwhile", async () => {
    const set = cell();
    const items: unknown[] = [];
    for await (const ref of Holds.remote().pairs.remote(set)) {
      items.push(await ray.get(ref));
      if (items.length < 2) continue;
      Atomics.store(set, 0, 1);
      Atomics.notify(set, 0);
    }
    expect(items).toEqual(["first", "second", "third"]);
  });
});
