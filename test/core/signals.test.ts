import { getEventListeners } from "node:events";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import * as ray from "@rayling/core";
import { apart } from "../fixtures/isolation.ts";
import { listen, Listener, type ListenerClass, ofItsLife, Single } from "../fixtures/signals.ts";

beforeAll(() => ray.init({ numCpus: 4, prewarm: 0, stuckWarningMs: 0 }));
afterAll(() => ray.shutdown());

type Handle = ray.ActorHandle<ListenerClass>;

/** So many of its calls have their signals, and wait. */
async function begins(listener: Handle, count = 1): Promise<void> {
  await expect.poll(() => ray.get(listener.begun.remote())).toBe(count);
}

const listenersOf = (signal: AbortSignal): number => getEventListeners(signal, "abort").length;

describe("a signal among the arguments of a call", () => {
  test("is one there, and is aborted when that of the caller is, for its reason", async () => {
    const listener = Listener.remote();
    const controller = new AbortController();
    const heard = listener.hear.remote(controller.signal);
    expect(await ray.get(listener.look.remote(controller.signal))).toEqual({
      isSignal: true,
      aborted: false,
    });
    await begins(listener);
    controller.abort(new RangeError("enough"));
    const reason = await ray.get(heard);
    expect(reason).toBeInstanceOf(RangeError);
    expect(reason).toMatchObject({ message: "enough" });
  });

  test.each<[string, unknown]>([
    ["a text", "stop"],
    ["data", { code: 3, list: [1, 2] }],
    ["a number that msgpack does not have", -0],
    ["what none is for", undefined],
  ])("for %s", async (_, reason) => {
    const listener = Listener.remote();
    const controller = new AbortController();
    const heard = listener.hear.remote(controller.signal);
    await begins(listener);
    controller.abort(reason);
    const found = await ray.get(heard);
    if (reason !== undefined) expect(found).toEqual(reason);
    else expect(found).toMatchObject({ name: "AbortError", code: 20 });
  });

  test("for what cannot travel, it says what that was", async () => {
    const listener = Listener.remote();
    const controller = new AbortController();
    const heard = listener.hear.remote(controller.signal);
    await begins(listener);
    controller.abort({ close: () => undefined });
    expect(await ray.get(heard)).toMatchObject({
      message: "aborted with what cannot travel: { close: [Function: close] }",
    });
    const big = listener.hear.remote(AbortSignal.abort("x".repeat(70_000)));
    expect(await ray.get(big)).toMatchObject({
      message: expect.stringMatching(/^aborted with a reason of 70\d{3} bytes; 65536 travel/),
    });
  });

  test("that is aborted already is so from the start", async () => {
    const listener = Listener.remote();
    const signal = AbortSignal.abort("before");
    const expected = { isSignal: true, aborted: true, reason: "before" };
    expect(await ray.get(listener.look.remote(signal))).toEqual(expected);
    expect(await ray.get(listen.remote({ signal }))).toBe("before");
    expect(await ray.get(ofItsLife.remote({ signal }).first.remote())).toEqual(expected);
  });

  test("that is aborted while its call stands in the queue of the actor is so from the start", async () => {
    const single = Single.remote();
    const [first, second] = [new AbortController(), new AbortController()];
    const waiting = single.waits.remote(first.signal);
    const queued = single.look.remote(second.signal);
    while (
      (await ray.state.getTask(queued.id))?.state !== "PENDING_ACTOR_TASK_ORDERING_OR_CONCURRENCY"
    ) {
      await new Promise((resolve) => setImmediate(resolve));
    }
    second.abort("early");
    first.abort();
    expect(await ray.get([waiting, queued])).toEqual([
      "left",
      { isSignal: true, aborted: true, reason: "early" },
    ]);
  });

  test("that is aborted before its call is sent is so from the start", async () => {
    const [listener, argument, controller] = [
      Listener.remote(),
      new AbortController(),
      new AbortController(),
    ];
    const late = listen.remote({ signal: argument.signal });
    const looked = listener.lookLate.remote(controller.signal, late as never);
    controller.abort("early");
    argument.abort(7);
    const expected = { isSignal: true, aborted: true, reason: "early" };
    expect(await ray.get(looked)).toEqual([expected, 7]);
  });

  test("may stand anywhere in it, and twice; each is its own", async () => {
    const listener = Listener.remote();
    const [one, other] = [new AbortController(), new AbortController()];
    const inside = listener.hearInside.remote({ deep: [one.signal], same: one.signal });
    const second = listener.hearSecond.remote(one.signal, 5, other.signal);
    await begins(listener, 2);
    other.abort("other");
    expect(await ray.get(second)).toEqual([5, "other"]);
    one.abort("one");
    expect(await ray.get(inside)).toEqual([true, "one"]);
  });

  test("of all kinds: of a time, of several, of refs beside it", async () => {
    const listener = Listener.remote();
    const timed = listener.hear.remote(AbortSignal.timeout(50));
    expect(await ray.get(timed)).toMatchObject({ name: "TimeoutError" });
    const controller = new AbortController();
    const any = AbortSignal.any([controller.signal, new AbortController().signal]);
    const heard = listener.hearSecond.remote(
      new AbortController().signal,
      ray.put(6) as never,
      any,
    );
    await begins(listener, 2);
    controller.abort("one of them");
    expect(await ray.get(heard)).toEqual([6, "one of them"]);
  });

  test("what a method rejects with because of it is what its caller has said", async () => {
    const listener = Listener.remote();
    const controller = new AbortController();
    const rejected = listener.reject.remote(controller.signal);
    await begins(listener);
    controller.abort();
    await expect(ray.get(rejected)).rejects.toMatchObject({ name: "AbortError" });
  });

  test("goes on to further calls", async () => {
    const listener = Listener.remote();
    const controller = new AbortController();
    const heard = listener.passOn.remote(controller.signal);
    await begins(listener);
    controller.abort("passed on");
    expect(await ray.get(heard)).toBe("passed on");
  });

  test("of a stream is its own until the stream ends", async () => {
    const listener = Listener.remote();
    const controller = new AbortController();
    const stream = listener.items.remote(controller.signal);
    const { value } = await stream.next();
    expect(await ray.get(value as ray.ObjectRef)).toMatchObject({ aborted: false });
    expect(listenersOf(controller.signal)).toBe(1);
    controller.abort("in the stream");
    const values: unknown[] = [];
    for await (const ref of stream) values.push(await ray.get(ref));
    expect(values).toEqual(["in the stream"]);
    expect(listenersOf(controller.signal)).toBe(0);
  });

  test("of a task", async () => {
    const controller = new AbortController();
    const heard = listen.remote({ signal: controller.signal });
    controller.abort("task");
    expect(await ray.get(heard)).toBe("task");
  });

  test("of a constructor is the actor's as long as it lives, and of each life", async () => {
    const controller = new AbortController();
    const { signal } = controller;
    const actor = ofItsLife
      .options({ ...apart, maxRestarts: 1, maxTaskRetries: 1 })
      .remote({ signal });
    expect(await ray.get(actor.first.remote())).toEqual({ isSignal: true, aborted: false });
    await ray.get(actor.crash.options({ maxTaskRetries: 0 }).remote()).catch(() => undefined);
    const heard = actor.hear.remote();
    await ray.get(actor.first.remote());
    expect(listenersOf(signal)).toBe(1);
    controller.abort("for ever");
    expect(await ray.get(heard)).toBe("for ever");
    expect(listenersOf(signal)).toBe(0);
  });

  test("a life that begins after it was aborted hears of it", async () => {
    const controller = new AbortController();
    const { signal } = controller;
    const actor = ofItsLife
      .options({ ...apart, maxRestarts: 1, maxTaskRetries: 1 })
      .remote({ signal });
    controller.abort("before it lived");
    expect(await ray.get(actor.hear.remote())).toBe("before it lived");
    await ray.get(actor.crash.options({ maxTaskRetries: 0 }).remote()).catch(() => undefined);
    expect(await ray.get(actor.hear.remote())).toBe("before it lived");
  });

  test("a call that is tried again has it again", async () => {
    const listener = Listener.options({ ...apart, maxRestarts: 1 }).remote();
    const controller = new AbortController();
    const heard = listener.hear.options({ maxTaskRetries: 1 }).remote(controller.signal);
    await begins(listener);
    await ray.get(listener.crash.remote()).catch(() => undefined);
    await begins(listener);
    controller.abort("at last");
    expect(await ray.get(heard)).toBe("at last");
  });
});

describe("after the call", () => {
  test("nobody listens to the caller's signal any more, however the call ends", async () => {
    const listener = Listener.options(apart).remote();
    const { signal } = new AbortController();
    const settled = async (ref: ray.ObjectRef): Promise<void> => {
      await ray.get(ref).catch(() => undefined);
      expect(listenersOf(signal)).toBe(0);
    };
    await settled(listener.look.remote(signal));
    const cancelled = listener.hear.remote(signal);
    await begins(listener);
    expect(listenersOf(signal)).toBe(1);
    ray.cancel(cancelled);
    await settled(cancelled);
    const lost = listener.hear.remote(signal);
    await begins(listener, 2);
    await ray.kill(listener);
    await settled(lost);
    expect(() => listener.hearInside.remote({ deep: [signal], same: (() => 1) as never })).toThrow(
      ray.NotEncodableError,
    );
    expect(listenersOf(signal)).toBe(0);
    const actor = ofItsLife.remote({ signal });
    await ray.get(actor.first.remote());
    await ray.kill(actor);
    await expect.poll(() => listenersOf(signal)).toBe(0);
  });

  test("a signal that was kept stays as it was", async () => {
    const listener = Listener.remote();
    const controller = new AbortController();
    expect(await ray.get(listener.keep.remote(controller.signal))).toBe(false);
    const other = new AbortController();
    const heard = listener.hear.remote(other.signal);
    await begins(listener);
    controller.abort();
    other.abort("after it");
    expect(await ray.get(heard)).toBe("after it");
    expect(await ray.get(listener.kept.remote())).toMatchObject({ aborted: false });
  });
});

test("a call that its caller may end by a signal is not taken for one that waits for itself", async () => {
  const [single, other] = [Single.remote(), Single.remote()];
  const controller = new AbortController();
  const either = single.either.remote(controller.signal);
  const begun = single.begun.remote();
  // By the time that a younger one is found, it would have been, too.
  const made = new AbortController();
  const actor = ofItsLife.options({ maxConcurrency: 1 }).remote({ signal: made.signal });
  const ofActor = actor.either.remote();
  const found = [0, 1].map(() => ray.get(other.knot.remote()));
  for (const one of found) await expect(one).rejects.toBeInstanceOf(ray.DeadlockError);
  controller.abort("by hand");
  made.abort("from its creator");
  expect(await ray.get([either, begun, ofActor])).toEqual(["by hand", 1, "from its creator"]);
});

describe("a signal that is no argument of a call is refused with its path", () => {
  const advice = "is an AbortSignal, which travels only as an argument of a call";
  test("in a put", () => {
    const { signal } = new AbortController();
    expect(() => ray.put({ list: [signal] })).toThrow(`value.list[0] ${advice}`);
  });

  test("in a result", async () => {
    const given = ray.get(Listener.remote().give.remote());
    await expect(given).rejects.toThrow(`result of ListenerClass.give ${advice}`);
  });

  test("in a reason, it is told as text", async () => {
    const listener = Listener.remote();
    const controller = new AbortController();
    const heard = listener.hear.remote(controller.signal);
    await begins(listener);
    controller.abort(new AbortController().signal);
    expect(await ray.get(heard)).toMatchObject({ message: expect.stringContaining("AbortSignal") });
  });
});
