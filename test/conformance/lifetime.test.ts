import { inspect } from "node:util";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import * as ray from "@rayling/core";
import { collect } from "../fixtures/collect.ts";
import {
  Counter,
  type CounterClass,
  Holder,
  Hooked,
  leaves,
  Log,
  same,
  Signal,
} from "../fixtures/conformance.ts";
import { alike, beside, initIn, isolations } from "../fixtures/isolations.ts";

describe.each(alike)("names, handles: %s", (isolation) => {
  beforeAll(() => initIn(isolation, { namespace: "here" }));
  afterAll(() => ray.shutdown());

  test("test_actor::test_return_actor_handle_from_actor: a handle that an actor returns is that of its actor", async () => {
    const holder = Holder.remote();
    const counter = await ray.get(holder.make.remote());
    expect(await ray.get(counter.increment.remote())).toBe(11);
    const again = await ray.get(holder.make.remote());
    expect(await ray.get(again.increment.remote())).toBe(12);
  });

  test("test_actor::test_wrapped_actor_handle: a handle inside a list reaches its actor", async () => {
    const counters = [Counter.remote(1), Counter.remote(2)];
    const holder = Holder.remote();
    expect(await ray.get(holder.use.remote({ handles: counters }))).toEqual([2, 3]);
    expect(await ray.get(counters.map((counter) => counter.read.remote()))).toEqual([2, 3]);
  });

  test.each(["task", "actor"] as const)(
    "nobody waits: the %s that a task has started runs to its end after the task's answer",
    async (kind) => {
      const [go, done] = [Signal.remote(), Signal.remote()];
      await ray.get(leaves.remote(kind, go, done));
      // Its worker is used for another task meanwhile, and is free again.
      await ray.get(same.remote(1));
      await collect();
      go.send.remote();
      await ray.get(done.wait.remote());
    },
  );

  test("test_actor::test_actor_equal: every handle of an actor prints as the same, that of another does not", async () => {
    const holder = Holder.remote();
    const [first, second] = await ray.get([holder.make.remote(), holder.make.remote()]);
    expect(inspect(first)).toBe(inspect(second));
    expect(inspect(first)).not.toBe(inspect(Counter.remote()));
    const named = Counter.options({ lifetime: "detached", name: "equal" }).remote();
    expect(inspect(await ray.getActor("equal"))).toBe(inspect(named));
  });

  test("test_actor_advanced::test_calling_put_on_actor_handle: a handle may be stored", async () => {
    const counter = Counter.remote(5);
    const stored = await ray.get(ray.put(counter));
    expect(await ray.get(stored.increment.remote())).toBe(6);
    const ref = ray.put({ deep: [counter] });
    const { deep } = await ray.get(ref);
    expect(await ray.get((deep[0] as typeof counter).increment.remote())).toBe(7);
  });

  test("test_actor::test_get_non_existing_named_actor: an unknown name is an error that says so", async () => {
    await expect(ray.getActor("non-existing")).rejects.toMatchObject({
      name: "ActorNotFoundError",
      actorName: "non-existing",
      namespace: "here",
    });
  });

  test.each([[undefined], [null], [""], ["   "], [5]])(
    "test_actor_advanced::test_get_actor_no_input: %j is no name",
    async (name) => {
      await expect(ray.getActor(name as never)).rejects.toMatchObject({
        code: "INVALID_OPTION",
        option: "name",
      });
    },
  );

  test("test_actor::test_named_actor_cache: a name finds the actor that has it now, fresh after a kill", async () => {
    for (const start of [10, 20]) {
      const actor = Counter.options({ lifetime: "detached", name: "cached" }).remote(start);
      await ray.get(actor.increment.remote());
      const found = await ray.getActor<CounterClass>("cached");
      expect(await ray.get(found.increment.remote())).toBe(start + 2);
      await ray.kill(actor);
      await expect(ray.getActor("cached")).rejects.toThrow(ray.ActorNotFoundError);
      await expect(ray.get(found.read.remote())).rejects.toThrow(ray.ActorDiedError);
    }
  });

  test("test_actor::test_get_actor_after_same_name_actor_dead: a taken name is refused, a killed actor's is free", async () => {
    const first = Counter.options({ lifetime: "detached", name: "same" }).remote(1);
    expect(() => Counter.options({ lifetime: "detached", name: "same" }).remote()).toThrow(
      ray.ActorAlreadyExistsError,
    );
    await ray.kill(first);
    const second = Counter.options({ lifetime: "detached", name: "same" }).remote(2);
    expect(await ray.get(second.read.remote())).toBe(2);
    await expect(ray.get(first.read.remote())).rejects.toThrow(ray.ActorDiedError);
  });

  test("test_get_or_create_actor::test_simple: getIfExists gives the one actor; it needs a name, a text", async () => {
    const make = Counter.options({ lifetime: "detached", name: "simple", getIfExists: true });
    const [first, second] = [make.remote(1), make.remote(100)];
    expect(await ray.get([first.increment.remote(), second.increment.remote()])).toEqual([2, 3]);
    expect(inspect(first)).toBe(inspect(second));
    expect(() => Counter.options({ getIfExists: true })).toThrow("getIfExists needs a name");
    expect(() => Counter.options({ name: 5 as never, getIfExists: true })).toThrow(TypeError);
  });

  test("test_actor_advanced::test_get_or_create_actor_from_multiple_threads: of all who race for a name, one creates", async () => {
    const holders = Array.from({ length: 4 }, () => Holder.remote());
    const calls = holders.flatMap((holder) =>
      Array.from({ length: 5 }, () => holder.named.remote("raced")),
    );
    const seen = await ray.get(calls);
    expect(seen.toSorted((left, right) => left - right)).toEqual(
      Array.from({ length: 20 }, (_, index) => index + 1),
    );
    // They have the counter's handle, and are held until here.
    expect(holders).toHaveLength(4);
  });

  test.each([[""], ["  "], [123], [null]])(
    "test_namespace::test_namespace_validation: %j is no namespace, for init, options and getActor",
    async (namespace) => {
      const options = { namespace: namespace as string };
      await expect(ray.init(options)).rejects.toMatchObject({ option: "namespace" });
      await expect(ray.getActor("x", options)).rejects.toMatchObject({ option: "namespace" });
      expect(() => Counter.options(options)).toThrow(ray.InvalidOptionError);
    },
  );
});

/** What only notes needs no host of its own. */
const witness = { isolation: "shared" } as const;

describe.each(isolations)("lifetime: %s", (isolation) => {
  beforeAll(() => initIn(isolation, { namespace: "here" }));
  afterAll(() => ray.shutdown());

  test("test_actor::test_atexit_handler: the hook for the end runs when the last handle is gone, on __ray_terminate__ and on exitActor, not on a kill or a crash", async () => {
    const dropped = Log.options(witness).remote();
    await ray.get(Hooked.remote(dropped).hello.remote());
    while ((await ray.get(dropped.lines.remote())).length === 0) await collect();
    const lines: unknown[] = [await ray.get(dropped.lines.remote())];
    for (const how of ["terminate", "leave", "kill", "crash"] as const) {
      const log = Log.options(beside(isolation)).remote();
      const actor = Hooked.remote(log);
      await ray.get(actor.hello.remote());
      if (how === "terminate") await died(actor.__ray_terminate__.remote());
      if (how === "leave") await died(actor.leave.remote());
      if (how === "kill") await ray.kill(actor);
      if (how === "crash") await died(actor.crash.remote());
      await died(actor.hello.remote());
      lines.push(await ray.get(log.lines.remote()));
    }
    expect(lines).toEqual([["shutdown"], ["shutdown"], ["shutdown"], [], []]);
  });

  test("test_actor_failures::test_actor_user_shutdown_method: __ray_shutdown__ runs once, after what runs has ended", async () => {
    const [log, signal] = [Log.options(witness).remote(), Signal.remote()];
    const actor = Hooked.remote(log);
    const running = actor.waitFor.remote(signal);
    await ray.get(signal.reached.remote(1));
    const end = actor.__ray_terminate__.remote();
    expect((await ray.wait([end], { timeoutMs: 20 })).ready).toEqual([]);
    expect(await ray.get(log.lines.remote())).toEqual([]);
    signal.send.remote();
    expect(await ray.get(running)).toBe("finished");
    await died(end);
    expect(await ray.get(log.lines.remote())).toEqual(["shutdown"]);
  });

  test("test_actor_failures::test_actor_ray_shutdown_dont_interfere_with_kill: a kill runs no hook, and what waits fails at once", async () => {
    const [log, signal] = [Log.options(witness).remote(), Signal.remote()];
    const actor = Hooked.remote(log);
    const running = actor.waitFor.remote(signal);
    await ray.get(signal.reached.remote(1));
    await ray.kill(actor);
    await expect(ray.get(running)).rejects.toMatchObject({ deathCause: { kind: "killed" } });
    expect(await ray.get(log.lines.remote())).toEqual([]);
  });

  test("exitActor gives no value, even if it is caught, and restarts nothing", async () => {
    const actor = Hooked.options({ maxRestarts: -1, maxTaskRetries: -1 }).remote(
      Log.options(witness).remote(),
    );
    for (const ref of [actor.leaveAndCatch.remote(), actor.hello.remote()]) {
      await expect(ray.get(ref)).rejects.toMatchObject({ deathCause: { kind: "exit-actor" } });
    }
    expect(() => ray.exitActor()).toThrow(TypeError);
  });
});

describe.each(alike)("sessions: %s", (isolation) => {
  test("test_namespace::test_default_namespace: a session without a namespace has one of its own, so names of two never meet", async () => {
    const namespaces: string[] = [];
    for (const start of [1, 2]) {
      await initIn(isolation);
      const pinger = Counter.options({ lifetime: "detached", name: "Pinger" }).remote(start);
      expect(await ray.get(pinger.read.remote())).toBe(start);
      const [listed] = await ray.listNamedActors({ allNamespaces: true });
      namespaces.push(listed?.namespace ?? "");
      await ray.shutdown();
    }
    expect(new Set(namespaces).size).toBe(2);
    expect(namespaces).not.toContain("");
  });

  test("test_error_ray_not_initialized: with automatic start off, every call says that nothing is started, again after shutdown", async () => {
    const before = process.env["RAYLING_AUTO_INIT"];
    process.env["RAYLING_AUTO_INIT"] = "0";
    try {
      await notInitialized();
      await initIn(isolation);
      expect(ray.isInitialized()).toBe(true);
      await ray.shutdown();
      await notInitialized();
    } finally {
      if (before === undefined) delete process.env["RAYLING_AUTO_INIT"];
      else process.env["RAYLING_AUTO_INIT"] = before;
    }
  });
});

async function notInitialized(): Promise<void> {
  const message = "the runtime has not been started: call init first";
  for (const call of [() => Counter.remote(), () => ray.put(1)]) {
    expect(call).toThrow(ray.RaySystemError);
    expect(call).toThrow(message);
  }
  for (const call of [
    () => ray.get([]),
    () => ray.wait([]),
    () => ray.getActor("x"),
    () => ray.listNamedActors(),
  ]) {
    await expect(call()).rejects.toThrow(ray.RaySystemError);
    await expect(call()).rejects.toThrow(message);
  }
  expect(ray.isInitialized()).toBe(false);
}

async function died(ref: ray.ObjectRef): Promise<void> {
  await expect(ray.get(ref)).rejects.toThrow(ray.ActorDiedError);
}
