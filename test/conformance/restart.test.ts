import { afterAll, beforeAll, describe, expect, test } from "vitest";
import * as ray from "@rayling/core";
import { Counter, Mortal } from "../fixtures/conformance.ts";
import { initIn, withinAndApart, isOverTls, beside } from "../fixtures/isolations.ts";

const caught = (promise: Promise<unknown>): Promise<unknown> =>
  promise.then(
    (value) => expect.fail(`expected a rejection, got ${String(value)}`),
    (error: unknown) => error,
  );

const oneTo = (count: number): number[] => Array.from({ length: count }, (_, index) => index + 1);

describe.each(withinAndApart)("restart and retry: %s", (isolation) => {
  beforeAll(() => initIn(isolation));
  afterAll(() => ray.shutdown());

  test.skipIf(isOverTls)(
    "test_actor_failures::test_actor_restart: results in order, a gap, results in order of a fresh state, then death",
    async () => {
      const actor = Mortal.options({ maxRestarts: 1 }).remote();
      const settled = await Promise.allSettled(
        Array.from({ length: 200 }, (_, index) =>
          ray.get(actor.increment.remote(index < 100 ? 100 : undefined)),
        ),
      );
      const values = settled.map((one) => (one.status === "fulfilled" ? one.value : undefined));
      const gap = values.indexOf(undefined);
      expect(values.slice(0, gap)).toEqual(oneTo(99));
      const back = values.findIndex((value, index) => index > gap && value !== undefined);
      for (const one of settled.slice(gap, back === -1 ? undefined : back)) {
        expect((one as PromiseRejectedResult).reason).toBeInstanceOf(ray.ActorUnavailableError);
      }
      if (back !== -1) expect(values.slice(back)).toEqual(oneTo(200 - back));
      const next = await ray.get(actor.increment.remote());
      expect(next).toBe((back === -1 ? 0 : 200 - back) + 1);
      expect(await caught(ray.get(actor.exit.remote(2)))).toBeInstanceOf(ray.ActorDiedError);
      for (const ref of [actor.increment.remote(), actor.pid.remote()]) {
        expect(await caught(ray.get(ref))).toMatchObject({ deathCause: { exitCode: 2 } });
      }
    },
  );

  test("test_actor_failures::test_actor_restart_with_retry: with retries all hundred results are right", async () => {
    const actor = Mortal.options({ maxRestarts: 1, maxTaskRetries: -1 }).remote();
    const first = Array.from({ length: 100 }, () => actor.increment.remote());
    await ray.get(first[50] as ray.ObjectRef<number>);
    await ray.kill(actor, { noRestart: false });
    const second = Array.from({ length: 100 }, () => actor.increment.remote());
    const values = await ray.get([...first, ...second]);
    // What was answered before the kill keeps its value; the rest runs in the new life, in order.
    const back = values.findIndex((value, index) => value !== index + 1);
    const cut = back === -1 ? 200 : back;
    expect(values.slice(0, cut)).toEqual(oneTo(cut));
    expect(values.slice(cut)).toEqual(oneTo(200 - cut));
    expect(cut).toBeGreaterThan(50);
  });

  test("test_actor_retry_1: five retries are six runs, the sixth of which succeeds", async () => {
    const runs = Counter.options(beside(isolation)).remote();
    const actor = Mortal.remote();
    const call = actor.throwsUntil.options({ maxTaskRetries: 5, retryExceptions: true });
    expect(await ray.get(call.remote(runs, 6))).toBe(6);
    expect(await ray.get(runs.read.remote())).toBe(6);
  });

  test("test_actor_retry_1: without the policy one run", async () => {
    const runs = Counter.options(beside(isolation)).remote();
    const actor = Mortal.options({ maxTaskRetries: 5 }).remote();
    await expect(ray.get(actor.throwsUntil.remote(runs, 6))).rejects.toThrow("run 1");
    expect(await ray.get(runs.read.remote())).toBe(1);
  });

  test("test_actor_retry_1: when the retries are used up the error comes", async () => {
    const runs = Counter.options(beside(isolation)).remote();
    const actor = Mortal.options({ maxTaskRetries: 5, retryExceptions: true }).remote();
    await expect(ray.get(actor.throwsUntil.remote(runs, 7))).rejects.toThrow("run 6");
    expect(await ray.get(runs.read.remote())).toBe(6);
  });

  test("test_actor_retry_1: the call's option beats the actor's", async () => {
    const runs = Counter.options(beside(isolation)).remote();
    const actor = Mortal.options({ maxTaskRetries: 5, retryExceptions: true }).remote();
    const once = actor.throwsUntil.options({ maxTaskRetries: 0 });
    await expect(ray.get(once.remote(runs, 3))).rejects.toThrow("run 1");
    const others = actor.throwsUntil.options({ retryExceptions: ["RangeError"] });
    await expect(ray.get(others.remote(runs, 9))).rejects.toThrow("run 2");
    expect(await ray.get(runs.read.remote())).toBe(2);
  });

  test("test_actor_retry_1::test_method_exit_no_over_retry_max_restarts: exits count against restarts and retries", async () => {
    const runs = Counter.options(beside(isolation)).remote();
    const actor = Mortal.options({
      maxRestarts: 1,
      maxTaskRetries: 5,
      retryExceptions: true,
    }).remote();
    // Throws, exits (the one restart), throws, exits: dead, whatever retries are left.
    expect(await caught(ray.get(actor.throwsAndExits.remote(runs, 9)))).toBeInstanceOf(
      ray.ActorDiedError,
    );
    expect(await ray.get(runs.read.remote())).toBe(4);
  });

  test("test_actor_retry_2::test_method_raise_and_exit: throws and exits together use up the retries", async () => {
    const runs = Counter.options(beside(isolation)).remote();
    const options = { maxRestarts: -1, maxTaskRetries: 3, retryExceptions: true };
    const actor = Mortal.options(options).remote();
    const late = await caught(ray.get(actor.throwsAndExits.remote(runs, 9)));
    expect(late).toBeInstanceOf(ray.ActorUnavailableError);
    expect(await ray.get(runs.read.remote())).toBe(4);
    const enough = Counter.options(beside(isolation)).remote();
    expect(await ray.get(actor.throwsAndExits.remote(enough, 4))).toBe(4);
  });

  test("test_unavailable_actors::test_actor_unavailable_restarting: the call in flight is unavailable, the next meets a fresh actor, the last life ends in death", async () => {
    const actor = Mortal.options({ maxRestarts: 1 }).remote();
    expect(await ray.get(actor.increment.remote())).toBe(1);
    const unavailable = await caught(ray.get(actor.exit.remote(1)));
    expect(unavailable).toBeInstanceOf(ray.ActorUnavailableError);
    expect((unavailable as Error).message).toContain("may or may not have run");
    expect(await ray.get(actor.increment.remote())).toBe(1);
    expect(await caught(ray.get(actor.exit.remote(1)))).toBeInstanceOf(ray.ActorDiedError);
  });

  test("test_unavailable_actors::test_actor_unavailable_norestart: without restarts it is dead at once", async () => {
    const actor = Mortal.remote();
    expect(await caught(ray.get(actor.exit.remote(1)))).toBeInstanceOf(ray.ActorDiedError);
    expect(await caught(ray.get(actor.increment.remote()))).toBeInstanceOf(ray.ActorDiedError);
  });
});
