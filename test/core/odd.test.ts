import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test } from "vitest";
import * as ray from "@rayling/core";
import { isAlone, sharesMemory, together } from "../fixtures/isolation.ts";
import { Meeting } from "../fixtures/actors.ts";
import {
  Barrier,
  Counting,
  DiesYoung,
  leavesWaiting,
  Maker,
  nested,
  Odd,
  oddNames,
  quick,
  waitForGate,
} from "../fixtures/odd.ts";

/** A session for each case, which may end it or leave it as it likes. */
function ownSession(): void {
  beforeEach(() => ray.init({ numCpus: 1, prewarm: 0 }));
  afterEach(() => ray.shutdown());
}

const sharedCell = (): Int32Array => new Int32Array(new SharedArrayBuffer(4));
const isSet = async (cell: Int32Array): Promise<void> => {
  await Atomics.waitAsync(cell, 0, 0).value;
};

describe("whatever user code throws or returns", () => {
  beforeAll(() => ray.init({ numCpus: 1, prewarm: 0, ...together }));
  afterAll(() => ray.shutdown());

  test.each(oddNames)("%s: the call fails with an Error and the actor lives on", async (name) => {
    const odd = Odd.remote();
    await expect(ray.get(odd.does.remote(name))).rejects.toBeInstanceOf(Error);
    await expect(ray.get(odd.doesLater.remote(name))).rejects.toBeInstanceOf(Error);
    expect(await ray.get(odd.hello.remote())).toBe("hello");
  });

  test("an error that holds itself may be put and got", async () => {
    const error: Error & { self?: unknown } = new Error("mine");
    error.self = error;
    expect(await ray.get(ray.put({ error }))).toMatchObject({ error: { message: "mine" } });
  });

  test("a field that looks like the runtime's own arrives as it is", async () => {
    const odd = Odd.remote();
    const name = "a field that looks like the runtime's own";
    await expect(ray.get(odd.does.remote(name))).rejects.toMatchObject({
      body: { $error: "boom" },
    });
  });

  test("a class may have a method toString", async () => {
    expect(await ray.get(Odd.remote().override.remote())).toBe("a method of the user's own");
  });
});

describe("nothing waits for ever", () => {
  ownSession();

  test("calls that wait for each other all reach the actor, however big their arguments are", async () => {
    const barrier = Barrier.remote();
    const load = ray.put(new Float32Array(256 * 1024));
    const calls = Array.from({ length: 24 }, () => barrier.join.remote(load, 24));
    expect(new Set(await ray.get(calls))).toEqual(new Set([256 * 1024]));
  });

  test.skipIf(!sharesMemory || !isAlone)(
    "an actor whose creator died before its arguments were ready is dead",
    async () => {
      const maker = Maker.remote();
      const cell = sharedCell();
      await ray.get(maker.startsNever.remote("orphan", cell));
      await isSet(cell);
      const orphan = await ray.getActor<{ value(): unknown }>("orphan");
      const settled = expect(ray.get(orphan.value.remote())).rejects.toThrow(
        "its creator died before",
      );
      await ray.kill(maker);
      await settled;
      await expect(ray.getActor("orphan")).rejects.toThrow(ray.ActorNotFoundError);
    },
  );

  test("a CPU that is granted to a dead host is free again", async () => {
    const gate = Meeting.remote();
    const maker = Maker.remote();
    const holds = waitForGate.remote(gate);
    await ray.get(maker.submits.remote());
    await ray.kill(maker);
    gate.open.remote();
    await ray.get(holds);
    expect(await ray.get(quick.remote(7))).toBe(7);
  });

  test("a task that leaves a get behind does not spoil its worker for tasks that wait", async () => {
    const never = Meeting.remote().never.remote();
    expect(await ray.get(leavesWaiting.remote({ ref: never }))).toBe(1);
    expect(await ray.get(nested.remote(3))).toBe(3);
  });

  test.skipIf(!sharesMemory)(
    "an actor that dies at every start ends when it is killed, however long it pauses",
    async () => {
      const starts = sharedCell();
      const young = DiesYoung.options({ maxRestarts: -1 }).remote(starts);
      const settled = expect(ray.get(young.hello.remote())).rejects.toMatchObject({
        deathCause: { kind: "killed" },
      });
      while (Atomics.load(starts, 0) < 3) {
        await Atomics.waitAsync(starts, 0, Atomics.load(starts, 0)).value;
      }
      await ray.kill(young);
      await settled;
    },
  );

  test("shutdown while calls wait for a task that is lost with it", async () => {
    const counting = Counting.remote();
    const gate = Meeting.remote();
    const lost = waitForGate.remote(gate);
    const calls = [counting.count.remote(lost), counting.count.remote("x".repeat(20_000))];
    const results = Promise.allSettled(calls.map((call) => ray.get(call)));
    await ray.shutdown();
    expect((await results).map(({ status }) => status)).toEqual(["rejected", "rejected"]);
  });

  test("a timeout beyond what a timer can hold is a long one", async () => {
    const ref = quick.remote(1);
    expect(await ray.get(ref, { timeoutMs: 30 * 24 * 3600 * 1000 })).toBe(1);
    const { ready } = await ray.wait([quick.remote(2)], { timeoutMs: 2 ** 40 });
    expect(ready).toHaveLength(1);
  });
});

describe("large calls", () => {
  ownSession();

  test("take more refs than two bytes can count", async () => {
    const one = ray.put(1);
    const many = Array.from({ length: 70_000 }, () => one);
    expect(await ray.get(Counting.remote().count.remote(...many))).toEqual({
      length: 70_000,
      defined: 70_000,
    });
  });
});

describe("options of calls", () => {
  ownSession();

  test("are checked like all others", async () => {
    const odd = Odd.remote();
    expect(() => odd.hello.options({ maxTaskRetires: 3 } as never)).toThrow(
      'no option "maxTaskRetires"',
    );
    expect(() => odd.hello.options({ maxTaskRetries: -2 })).toThrow("option maxTaskRetries");
    await expect(ray.get(ray.put(1), { timeout: 5 } as never)).rejects.toThrow(
      'no option "timeout"',
    );
  });
});

describe("a session that has ended", () => {
  ownSession();

  test("what is of a session that has ended is refused by its name, and starts nothing", async () => {
    const ended = "belongs to a session that has ended";
    const odd = Odd.remote();
    const ready = odd.hello.remote();
    await ray.get(ready);
    const stored = ray.put(1);
    await ray.shutdown();
    await expect(ray.kill(odd)).rejects.toThrow(ended);
    await expect(ray.get(ready)).rejects.toThrow(`ObjectRef(${ready.id}) of Odd.hello ${ended}`);
    await expect(ray.get([stored])).rejects.toThrow(ray.RaySystemError);
    await expect(ray.wait([stored])).rejects.toThrow(ended);
    expect(() => ray.cancel(ready)).toThrow(ended);
    expect(ray.isInitialized()).toBe(false);
    await ray.init({ numCpus: 1, prewarm: 0 });
    await expect(ray.get(stored)).rejects.toThrow(ended);
    await expect(ray.wait([ray.put(2), stored])).rejects.toThrow(ended);
    for (const old of [stored, odd]) expect(() => ray.put({ old })).toThrow(ended);
    await expect(ray.kill(odd)).rejects.toThrow(ended);
  });
});
