import { afterAll, beforeAll, describe, expect, test } from "vitest";
import * as ray from "@rayling/core";
import { apart, beside, drainsAtExit, isAlone, sharesMemory } from "../fixtures/isolation.ts";
import { isFull, sized } from "../fixtures/suite.ts";
import {
  BudgetError,
  SlowError,
  Caller,
  Counter,
  type CounterClass,
  crashUntil,
  Flaky,
  Loader,
  Meeting,
  throwing,
} from "../fixtures/actors.ts";
import { plusOne } from "../fixtures/calls.ts";

beforeAll(() => ray.init({ numCpus: 2, prewarm: 0 }));
afterAll(() => ray.shutdown());

const caught = (ref: ray.ObjectRef): Promise<unknown> =>
  ray.get(ref).then(
    (value) => expect.fail(`expected a rejection, got ${String(value)}`),
    (error: unknown) => error,
  );

describe("an error that user code throws", () => {
  /** Its state is not looked at. */
  let thrower: ray.ActorHandle<CounterClass>;
  beforeAll(() => {
    thrower = Counter.remote();
  });

  test("comes back as its own class with message, code, fields and cause, and as a TaskError", async () => {
    const error = await caught(thrower.fail.remote("over"));
    expect(error).toBeInstanceOf(BudgetError);
    expect(error).toBeInstanceOf(ray.TaskError);
    const budget = error as BudgetError;
    expect([budget.name, budget.message, budget.code, budget.left, budget.isEmpty]).toEqual([
      "BudgetError",
      "over",
      "BUDGET",
      3,
      false,
    ]);
    expect(budget.cause).toBeInstanceOf(TypeError);
    expect((budget.cause as Error).message).toBe("the reason");
    expect(ray.remoteSiteOf(error)).toMatchObject({ functionName: "CounterClass.fail" });
  });

  test("shows the remote stack without the runtime's frames, and the local call below it", async () => {
    const error = (await caught(thrower.fail.remote("over"))) as Error;
    expect(error.stack).toMatch(
      /^BudgetError: over\n {4}at CounterClass\.fail .*fixtures\/actors\.ts/,
    );
    expect(error.stack).toContain("failures.test.ts");
    expect(error.stack).not.toContain("packages/core/src");
  });

  test.each<[string, (value: never) => unknown]>([
    ["a task", (value) => plusOne.remote(value)],
    ["a task with options", (value) => plusOne.options({ numCpus: 0 }).remote(value)],
    ["a constructor", (value) => Counter.remote(value)],
    ["a constructor with options", (value) => Counter.options({ numCpus: 0 }).remote(value)],
    ["a method", (value) => Counter.options({ numCpus: 0 }).remote().fail.remote(value)],
    [
      "a method with options",
      (value) => Counter.options({ numCpus: 0 }).remote().fail.options({ name: "n" }).remote(value),
    ],
    ["put", (value) => ray.put(value)],
  ])("an argument that cannot travel: its stack begins at the call of %s", (_, call) => {
    const deep: { inner?: unknown } = {};
    let last = deep;
    for (let level = 0; level < 20; level++) {
      const inner = {};
      last.inner = inner;
      last = inner;
    }
    last.inner = (): void => undefined;
    for (const value of [last.inner, { f: last.inner }, deep, new WeakMap()]) {
      let stack = "";
      try {
        call(value as never);
      } catch (error) {
        expect(error).toBeInstanceOf(ray.NotEncodableError);
        stack = String((error as Error).stack);
      }
      expect(stack.split("\n")[1]).toContain("failures.test.ts");
    }
  });

  test.each([["text"], [5], [null], [{ plain: "object" }]])(
    "may be no Error at all: %j",
    async (value) => {
      const error = await caught(thrower.failWith.remote(value));
      expect(error).toBeInstanceOf(ray.TaskError);
      expect((error as Error).cause).toEqual(value);
    },
  );

  test("keeps the nested errors of an AggregateError", async () => {
    const error = await caught(
      thrower.failWith.remote(
        new AggregateError([new RangeError("one"), new TypeError("two")], "both"),
      ),
    );
    expect(error).toBeInstanceOf(AggregateError);
    expect((error as AggregateError).errors.map(String)).toEqual([
      "RangeError: one",
      "TypeError: two",
    ]);
  });

  test("keeps its text when a field cannot travel", async () => {
    const error = new Error("still readable");
    const awkward = Object.assign(error, { handler: () => 1, fine: [1] });
    // The field is lost on the way there as it would be on the way back: the message must not be.
    const back = await caught(thrower.failWith.remote(awkward));
    expect(back).toMatchObject({
      message: "still readable",
      fine: [1],
      handler: "[Function: handler]",
    });
  });

  test("goes through tasks and actors unchanged", async () => {
    const counter = thrower;
    const error = await caught(Caller.remote().callOther.remote(counter, throwing.remote("deep")));
    expect(error).toMatchObject({ name: "BudgetError", message: "deep" });
  });
});

describe("a result that cannot travel", () => {
  test("fails its call and names the path", async () => {
    const error = await caught(Counter.remote().notEncodable.remote());
    expect(error).toBeInstanceOf(TypeError);
    expect(error).toMatchObject({ code: "NOT_ENCODABLE" });
    expect(String(error)).toContain(
      "result of CounterClass.notEncodable.handlers.onDone is a function",
    );
  });
});

describe("a host that dies", () => {
  // Which have threads of their own wherever others live.
  test.runIf(sharesMemory && (isAlone || isFull))(
    "out of memory takes no other along, however many do so at once",
    async () => {
      const runtimeEnv = { resourceLimits: { maxOldGenerationSizeMb: 48 } };
      const hogs = Array.from({ length: sized({ gate: 2, full: 8 }) }, () =>
        Flaky.options({ runtimeEnv, ...apart }).remote(),
      );
      const causes = await Promise.all(hogs.map((one) => caught(one.hog.remote())));
      for (const cause of causes) {
        expect(cause).toMatchObject({ deathCause: { kind: "out-of-memory" } });
      }
    },
  );

  test.each<[string, () => ray.ObjectRef, string, RegExp]>([
    ["by process.exit", () => Counter.remote().exit.remote(3), "exited", /exited with code 3/],
    [
      "by an uncaught exception",
      () => Meeting.remote().crashLater.remote(),
      "uncaught-exception",
      /nobody catches this/,
    ],
    [
      "out of memory",
      () =>
        Flaky.options({ runtimeEnv: { resourceLimits: { maxOldGenerationSizeMb: 24 } } })
          .remote()
          .hog.remote(),
      "out-of-memory",
      /heap limit/,
    ],
  ])(
    "%s rejects its calls with ActorDiedError and the cause",
    async (_name, call, kind, message) => {
      const error = await caught(call());
      expect(error).toBeInstanceOf(ray.ActorDiedError);
      expect(error).toMatchObject({ code: "ACTOR_DIED", deathCause: { kind } });
      expect((error as Error).message).toMatch(message);
    },
  );

  test.runIf(drainsAtExit)(
    "has answered what it finished before, in the same turn too",
    async () => {
      const counter = Counter.remote();
      const before = Array.from({ length: 100 }, () => counter.increment.remote());
      const exit = counter.exit.remote(1);
      const after = counter.increment.remote();
      expect(await ray.get(before)).toEqual(Array.from({ length: 100 }, (_, index) => index + 1));
      expect(await caught(exit)).toBeInstanceOf(ray.ActorDiedError);
      expect(await caught(after)).toBeInstanceOf(ray.ActorDiedError);
    },
  );

  test("rejects everything pending and everything later", async () => {
    const meeting = Meeting.remote();
    const pending = Array.from({ length: 50 }, () => meeting.wait.remote());
    meeting.crashLater.remote();
    for (const ref of pending) expect(await caught(ref)).toBeInstanceOf(ray.ActorDiedError);
    expect(await caught(meeting.most.remote())).toBeInstanceOf(ray.ActorDiedError);
  });

  test("by kill says so; a killed actor is gone when kill resolves", async () => {
    const counter = Counter.options({ lifetime: "detached", name: "victim" }).remote();
    await ray.get(counter.read.remote());
    await ray.kill(counter);
    await expect(ray.getActor("victim")).rejects.toThrow(ray.ActorNotFoundError);
    const error = await caught(counter.read.remote());
    expect(error).toMatchObject({ deathCause: { kind: "killed" } });
    await ray.kill(counter);
  });

  test.skipIf(!sharesMemory || !isAlone)("is killed even in an endless loop", async () => {
    const flaky = Flaky.remote();
    const started = new Int32Array(new SharedArrayBuffer(4));
    const spinning = flaky.spin.remote(started);
    await Atomics.waitAsync(started, 0, 0).value;
    await ray.kill(flaky);
    expect(await caught(spinning)).toBeInstanceOf(ray.ActorDiedError);
  });

  test("may be killed before it lives, and by another actor", async () => {
    const early = Counter.remote();
    const ref = early.read.remote();
    await ray.kill(early);
    expect(await caught(ref)).toBeInstanceOf(ray.ActorDiedError);
    const counter = Counter.remote();
    await ray.get(counter.read.remote());
    await ray.get(Caller.remote().killOther.remote(counter));
    expect(await caught(counter.read.remote())).toMatchObject({ deathCause: { kind: "killed" } });
  });

  test("is seen by actors that call it directly", async () => {
    const counter = Counter.remote();
    const caller = Caller.remote();
    await ray.get(caller.callOther.remote(counter, 1));
    await caught(counter.exit.remote(5));
    expect(await caught(caller.callOther.remote(counter, 1))).toMatchObject({ code: "ACTOR_DIED" });
  });

  test.skipIf(!isAlone)("takes what it owned with it", async () => {
    const caller = Caller.remote();
    const inner = await ray.get(caller.makeRef.remote("gone"));
    await ray.kill(caller);
    await expect(ray.get(inner)).rejects.toMatchObject({ code: "OWNER_DIED" });
  });

  test("kill refuses what is no handle", async () => {
    // @ts-expect-error not a handle
    await expect(ray.kill({})).rejects.toThrow("an actor handle is expected, not {}");
  });
});

describe("restart and retry", () => {
  test("maxRestarts starts the actor again with fresh state; calls in flight are unavailable, then it dies", async () => {
    const counter = Counter.options({ maxRestarts: 1 }).remote(10);
    expect(await ray.get(counter.increment.remote())).toBe(11);
    const unavailable = await caught(counter.exit.remote(1));
    expect(unavailable).toBeInstanceOf(ray.ActorUnavailableError);
    expect((unavailable as Error).cause).toMatchObject({
      code: "ACTOR_DIED",
      deathCause: { exitCode: 1 },
    });
    expect(await ray.get(counter.increment.remote())).toBe(11);
    expect(await caught(counter.exit.remote(2))).toBeInstanceOf(ray.ActorDiedError);
    expect(await caught(counter.increment.remote())).toMatchObject({ deathCause: { exitCode: 2 } });
  });

  test("maxTaskRetries runs a lost call again", async () => {
    Counter.options({ ...beside, lifetime: "detached", name: "attempts-1" }).remote();
    const flaky = Flaky.options({ maxRestarts: -1, maxTaskRetries: 5 }).remote();
    expect(await ray.get(flaky.exitUntil.remote("attempts-1", 4))).toBe(4);
  });

  test("retries of a call win over those of the actor, and are used up", async () => {
    Counter.options({ ...beside, lifetime: "detached", name: "attempts-2" }).remote();
    const flaky = Flaky.options({ maxRestarts: -1, maxTaskRetries: 5 }).remote();
    const once = await caught(
      flaky.exitUntil.options({ maxTaskRetries: 0 }).remote("attempts-2", 9),
    );
    expect(once).toBeInstanceOf(ray.ActorUnavailableError);
    const twice = await caught(
      flaky.exitUntil.options({ maxTaskRetries: 1 }).remote("attempts-2", 9),
    );
    expect(twice).toBeInstanceOf(ray.ActorUnavailableError);
    const counter = await ray.getActor<{ read(): number }>("attempts-2");
    expect(await ray.get(counter.read.remote())).toBe(3);
  });

  test("retryExceptions tries again what throws: always, or by class, or not at all", async () => {
    Counter.options({ isolation: "shared", name: "throws", lifetime: "detached" }).remote();
    const flaky = Flaky.remote();
    const method = (retryExceptions: ray.CallOptions["retryExceptions"] & {}): Promise<number> =>
      ray.get(flaky.throwUntil.options({ maxTaskRetries: 5, retryExceptions }).remote("throws", 3));
    expect(await method(true)).toBe(3);
    const counter = await ray.getActor<{ increment(by: number): number }>("throws");
    await ray.get(counter.increment.remote(-3));
    expect(await method([BudgetError])).toBe(3);
    await ray.get(counter.increment.remote(-3));
    await expect(method(["RangeError"])).rejects.toThrow("attempt 1");
  });

  test("what is tried again goes before what waits for it, directly or through others", async () => {
    const actor = Loader.options({ maxTaskRetries: 3, retryExceptions: true }).remote();
    const data = actor.load.remote(2);
    const chain = plusOne.remote(actor.train.remote(data));
    const last = actor.train.remote(chain);
    expect(await ray.get([data, last])).toEqual([7, 710]);
    // A call that is ready stands before one that is not: the retry goes between.
    const more = actor.load.remote(5);
    const ready = actor.train.remote(1);
    const waiting = actor.train.remote(more);
    expect(await ray.get([more, ready, waiting])).toEqual([7, 10, 70]);
  });

  test("retryExceptions knows classes that set no name, and those that come from them", async () => {
    const counter = Counter.options({
      isolation: "shared",
      name: "late",
      lifetime: "detached",
    }).remote();
    const flaky = Flaky.remote();
    const method = (retryExceptions: ray.CallOptions["retryExceptions"] & {}): Promise<number> =>
      ray.get(
        flaky.throwLateUntil.options({ maxTaskRetries: 5, retryExceptions }).remote("late", 3),
      );
    for (const classes of [[SlowError], ["LateError"], [RangeError], [Error]]) {
      expect(await method(classes)).toBe(3);
      await ray.get(counter.increment.remote(-3));
    }
    const error = await method([BudgetError, TypeError]).catch((thrown: unknown) => thrown);
    expect(error).toBeInstanceOf(SlowError);
    expect((error as Error).constructor.name).toBe("LateError");
    expect((error as Error).message).toBe("attempt 1");
  });

  test("kill with noRestart: false restarts; kill without it does not, whatever restarts are left", async () => {
    const counter = Counter.options({ maxRestarts: 5 }).remote(1);
    await ray.get(counter.increment.remote());
    await ray.kill(counter, { noRestart: false });
    expect(await ray.get(counter.read.remote())).toBe(1);
    await ray.kill(counter);
    expect(await caught(counter.read.remote())).toBeInstanceOf(ray.ActorDiedError);
  });

  test("kill with noRestart: false costs a life at every moment of the start", async () => {
    for (let ticks = 0; ticks < sized({ gate: 5, full: 10 }); ticks++) {
      const counter = Counter.remote(1);
      for (let tick = 0; tick < ticks; tick++) await Promise.resolve();
      await ray.kill(counter, { noRestart: false });
      expect(await caught(counter.read.remote())).toBeInstanceOf(ray.ActorDiedError);
    }
  });

  test("those that are killed before it is their turn to start never do, and the others do", async () => {
    const all = Array.from({ length: sized({ gate: 9, full: 24 }) }, (_, index) =>
      Counter.options({ maxRestarts: index % 3 === 1 ? 1 : 0, numCpus: 0 }).remote(index),
    );
    const kills = all.flatMap((counter, index) =>
      index % 3 === 0 ? [] : [ray.kill(counter, { noRestart: index % 3 === 2 })],
    );
    const values = await Promise.allSettled(all.map((counter) => ray.get(counter.read.remote())));
    await Promise.all(kills);
    expect(values.map((value) => (value.status === "fulfilled" ? value.value : "dead"))).toEqual(
      all.map((_, index) => (index % 3 === 2 ? "dead" : index)),
    );
    await Promise.all(all.map((counter) => ray.kill(counter)));
  });

  test("200 calls over a death in the middle: all answered with retries, in order again", async () => {
    const counter = Counter.options({ maxRestarts: 1, maxTaskRetries: -1 }).remote();
    const before = Array.from({ length: 100 }, () => counter.increment.remote());
    await ray.get(before);
    await ray.kill(counter, { noRestart: false });
    const after = Array.from({ length: 100 }, () => counter.increment.remote());
    expect(await ray.get(after)).toEqual(Array.from({ length: 100 }, (_, index) => index + 1));
  });

  test("a task whose worker dies is tried again, and fails with WorkerCrashedError when retries are used up", async () => {
    Counter.options({ isolation: "shared", lifetime: "detached", name: "crashes" }).remote();
    expect(await ray.get(crashUntil.remote("crashes", 3))).toBe(3);
    const error = await caught(crashUntil.options({ maxRetries: 1 }).remote("crashes", 99));
    expect(error).toBeInstanceOf(ray.WorkerCrashedError);
    expect(error).toMatchObject({ deathCause: { exitCode: 7 }, functionName: "crashUntil" });
  });
});
