import { afterAll, beforeAll, describe, expect, test } from "vitest";
import * as ray from "@rayling/core";
import { sharesMemory, together } from "../fixtures/isolation.ts";
import { CounterClass, Meeting } from "../fixtures/actors.ts";
import { Busy, divide, Grouped, Several } from "../fixtures/calls.ts";

beforeAll(() => ray.init({ numCpus: 2, prewarm: 0, ...together }));
afterAll(() => ray.shutdown());

const cell = (): Int32Array => new Int32Array(new SharedArrayBuffer(4));
const isSet = async (of: Int32Array): Promise<void> =>
  void (await Atomics.waitAsync(of, 0, 0).value);

describe("concurrency groups", () => {
  test("have a limit each, and the default group has its own", async () => {
    const actor = Grouped.remote();
    const work = actor.work.options({ concurrencyGroup: "compute" });
    const first = work.remote("first", "gate");
    const second = work.remote("second", "gate");
    const free = actor.work.remote("default", "gate");
    const io = [actor.read.remote("io 1"), actor.read.remote("io 2")];
    expect(await ray.get(io)).toEqual(["io 1", "io 2"]);
    // Groups have no order among each other.
    expect(new Set(await ray.get(actor.started.remote()))).toEqual(
      new Set(["first", "default", "io 1", "io 2"]),
    );
    await ray.get(actor.open.remote("gate"));
    expect(await ray.get([first, second, free])).toEqual(["first", "second", "default"]);
    expect((await ray.get(actor.started.remote())).at(-1)).toBe("second");
  });

  test("do not wait for each other's arguments, nor does an async actor's call for another's", async () => {
    const gate = Meeting.remote();
    const actor = Grouped.remote();
    const slow = gate.wait.remote();
    const held = actor.work.remote("held", undefined, slow);
    expect(await ray.get(actor.work.remote("same group"))).toBe("same group");
    expect(await ray.get(actor.read.remote("other group"))).toBe("other group");
    gate.open.remote();
    expect(await ray.get(held)).toBe("held");
  });

  test("that are unknown, empty or moved to options() are refused by name", () => {
    expect(() => Grouped.remote().work.options({ concurrencyGroup: "gpu" })).toThrow(
      'Grouped has no concurrency group "gpu"; it has: io, compute, control',
    );
    // Not registered: the options are wrong before anything is.
    expect(() => ray.remote(CounterClass, { concurrencyGroups: { io: 0 } })).toThrow(
      "option concurrencyGroups .io must be greater than 0",
    );
    expect(() =>
      ray.remote(CounterClass, { methods: { increment: { concurrencyGroup: "io" } } }),
    ).toThrow('method increment is in the concurrency group "io"');
    // @ts-expect-error no such method
    expect(() => ray.remote(CounterClass, { methods: { decrement: {} } })).toThrow(
      'actor class CounterClass has no method "decrement"',
    );
    // @ts-expect-error groups belong to the class
    expect(() => Grouped.options({ concurrencyGroups: { io: 3 } })).toThrow("concurrencyGroups");
  });
});

describe("the order of calls", () => {
  test("may be given up, so that calls pass one whose argument is not ready", async () => {
    const gate = Meeting.remote();
    const actor = ray.remote(CounterClass, { allowOutOfOrderExecution: true });
    expect(() => actor.options({ maxConcurrency: 3, allowOutOfOrderExecution: false })).toThrow(
      "allowOutOfOrderExecution cannot be false",
    );
    const slow = gate.wait.remote();
    const several = Several.options({ allowOutOfOrderExecution: true }).remote();
    const held = several.list.remote(slow);
    expect(await ray.get(several.count.remote())).toBe(1);
    gate.open.remote();
    expect(await ray.get(held)).toEqual([0]);
  });

  test("a call parked for its argument fails with its actor", async () => {
    const gate = Meeting.remote();
    const actor = Several.options({ allowOutOfOrderExecution: true }).remote();
    const held = actor.list.remote(gate.never.remote());
    await ray.kill(actor);
    await expect(ray.get(held)).rejects.toMatchObject({ code: "ACTOR_DIED" });
  });

  test("a cancelled head lets those behind it run", async () => {
    const gate = Meeting.remote();
    const actor = Several.options({ maxConcurrency: 1 }).remote();
    const head = actor.list.remote(gate.never.remote());
    const next = actor.count.remote();
    ray.cancel(head);
    expect(await ray.get(next)).toBe(1);
    await expect(ray.get(head)).rejects.toMatchObject({ code: "TASK_CANCELLED" });
  });
});

describe("numReturns", () => {
  test("gives as many refs, by method and by call, and for a task", async () => {
    const actor = Several.remote();
    const [number, text] = actor.pair.remote();
    expect(await ray.get(text)).toBe("one");
    expect(await ray.get(number)).toBe(1);
    const three = actor.list.options({ numReturns: 3 }).remote(3);
    expect(await ray.get(three)).toEqual([0, 1, 2]);
    expect(await ray.get([...actor.three.options({ numReturns: 3 }).remote()])).toEqual([
      "a",
      "b",
      "c",
    ]);
    expect(await ray.get(actor.pair.options({ numReturns: 1 }).remote())).toEqual([1, "one"]);
    const [quotient, rest] = divide.remote(17, 5);
    expect(await ray.get([quotient, rest])).toEqual([3, 2]);
  });

  test("that is undefined counts as not given", async () => {
    const none: { numReturns?: undefined } = { numReturns: undefined };
    const [number] = Several.remote().pair.options(none).remote();
    expect(await ray.get(number)).toBe(1);
    const [quotient] = divide.options(none).remote(17, 5);
    expect(await ray.get(quotient)).toBe(3);
  });

  test("of 0 gives nothing, and the method runs", async () => {
    const actor = Several.remote();
    expect(actor.count.options({ numReturns: 0 }).remote()).toBeUndefined();
    expect(await ray.get(actor.count.remote())).toBe(2);
  });

  test("that does not fit what is returned fails every ref, and so does what the method throws", async () => {
    const actor = Several.remote();
    for (const ref of actor.list.options({ numReturns: 2 }).remote(3)) {
      await expect(ray.get(ref)).rejects.toThrow(
        "must be a list of 2 values, as its numReturns says; it is 3 values",
      );
    }
    for (const ref of actor.fail.options({ numReturns: 2 }).remote()) {
      await expect(ray.get(ref)).rejects.toThrow("none of them");
    }
    expect(() => actor.list.options({ numReturns: -1 })).toThrow("numReturns");
  });
});

describe.skipIf(!sharesMemory)("maxPendingCalls", () => {
  test("refuses one call more, and none when they are answered", async () => {
    const [started, release] = [cell(), cell()];
    const actor = Busy.options({ maxPendingCalls: 10 }).remote();
    const held = actor.hold.remote(started, release);
    await isSet(started);
    const queued = Array.from({ length: 9 }, () => actor.mark.remote(cell()));
    expect(() => actor.mark.remote(cell())).toThrow(ray.PendingCallsLimitExceeded);
    Atomics.store(release, 0, 1);
    Atomics.notify(release, 0);
    expect(await ray.get([held, ...queued])).toHaveLength(10);
    expect(await ray.get(actor.mark.remote(cell()))).toBe(0);
  });
});

describe("methods that every actor has", () => {
  test("__ray_ready__ is true when the constructor has run", async () => {
    expect(await ray.get(Several.remote().__ray_ready__.remote())).toBe(true);
  });

  test("their names are reserved", () => {
    class Thenable {
      // oxlint-disable-next-line unicorn/no-thenable -- that is the mistake
      then(): void {}
    }
    class Ready {
      __ray_ready__(): void {}
    }
    expect(() => ray.remote(Thenable)).toThrow("a method cannot be called then");
    expect(() => ray.remote(Ready)).toThrow("a method cannot be called __ray_ready__");
  });
});
