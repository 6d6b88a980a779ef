import { afterAll, beforeAll, describe, expect, test } from "vitest";
import * as ray from "@rayling/core";
import { sharesMemory } from "../fixtures/isolation.ts";
import { Leaves, LeavesSync, Sees, SeesEnd, seesTask } from "../fixtures/calls.ts";
import { Log } from "../fixtures/conformance.ts";

beforeAll(() => ray.init({ numCpus: 2, prewarm: 0, namespace: "here", labels: { zone: "a" } }));
afterAll(() => ray.shutdown());

const cell = (): Int32Array => new Int32Array(new SharedArrayBuffer(4));

describe("the runtime context", () => {
  test("in a driver has no task and no actor", () => {
    const context = ray.getRuntimeContext();
    expect(context.getTaskId()).toBeNull();
    expect(context.getActorId()).toBeNull();
    expect(context.getActorName()).toBeNull();
    expect(context.namespace).toBe("here");
    expect(() => context.isCanceled()).toThrow("runs in no task");
    expect(() => context.currentActor()).toThrow("runs in no actor");
  });

  test("in a method knows the call and the actor, before and after an await, in the first call and later ones", async () => {
    const actor = Sees.options({ name: "seer" }).remote();
    for (let round = 0; round < 3; round++) {
      const refs = [actor.now.remote(), actor.afterAwait.remote()] as const;
      const [now, later] = await ray.get(refs);
      for (const [index, one] of [now, later].entries()) {
        expect(one).toMatchObject({
          taskId: refs[index]?.id,
          taskName: index === 0 ? "SeesClass.now" : "SeesClass.afterAwait",
          actorName: "seer",
          namespace: "here",
          reconstructed: false,
        });
      }
      expect(now.actorId).toBe(later.actorId);
    }
    const constructed = await ray.get(actor.constructed.remote());
    expect(constructed).toMatchObject({ functionName: "SeesClass.constructor", actorName: "seer" });
    await ray.kill(actor);
  });

  test("has the namespace of the session, in which names are looked for, whatever the actor's is", async () => {
    const actor = Sees.options({ name: "elsewhere", namespace: "there" }).remote();
    expect((await ray.get(actor.now.remote())).namespace).toBe("here");
    await ray.kill(actor);
  });

  test("of what a synchronous method has left behind is its actor's, in the first call and later ones", async () => {
    const actor = Sees.remote();
    const { actorId } = await ray.get(actor.now.remote());
    for (let call = 0; call < 3; call++) await ray.get(actor.later.remote());
    await ray.get([actor.later.remote(), actor.later.remote()]);
    const late = await ray.get(actor.seenLate.remote(5));
    expect(late.map((seen) => seen.actorId)).toEqual(Array.from({ length: 5 }, () => actorId));
  });

  test("of what two actors of one thread have left behind is each one's own, if their calls alternate", async () => {
    const Shared = Sees.options({ isolation: "shared" });
    const actors = [Shared.remote(), Shared.remote()] as const;
    const asked = await ray.get(actors.map((actor) => actor.now.remote()));
    const [one, other] = asked.map((seen) => seen.actorId);
    expect(one).not.toBe(other);
    const rounds = 40;
    for (let call = 0; call < 3; call++) await ray.get(actors.map((actor) => actor.later.remote()));
    await ray.get(
      Array.from({ length: rounds }).flatMap(() => actors.map((actor) => actor.later.remote())),
    );
    const late = await ray.get(actors.map((actor) => actor.seenLate.remote(3 + rounds)));
    expect(late.map((seen) => new Set(seen.map(({ actorId }) => actorId)))).toEqual([
      new Set([one]),
      new Set([other]),
    ]);
  });

  test("in a method that returns a promise now and then is the call's", async () => {
    const actor = Sees.remote();
    const calls = [true, false, false, true, false, true].map((isAsync) =>
      actor.sometimes.remote(isAsync),
    );
    const taskIds = (await ray.get(calls)).map((seen) => seen.taskId);
    expect(taskIds).toEqual(calls.map(({ id }) => id));
  });

  test("in the hook for its end is the actor's", async () => {
    const log = Log.remote();
    // Nobody holds it any more when it has answered.
    const { actorId } = await ray.get(SeesEnd.remote({ log }).now.remote());
    let lines: readonly unknown[] = [];
    while (lines.length === 0) {
      globalThis.gc?.();
      lines = await ray.get(log.lines.remote());
    }
    expect(lines).toEqual([actorId]);
  });

  test("knows the call's own name, of any number of names", async () => {
    const actor = Sees.remote();
    const names = Array.from({ length: 600 }, (_, index) => `call ${index}`);
    const seen = await ray.get(names.map((name) => actor.now.options({ name }).remote()));
    expect(seen.map(({ taskName }) => taskName)).toEqual(names);
    expect(seen[0]).toMatchObject({ functionName: "SeesClass.now", actorName: "" });
  });

  test("is of one job, on a node with its labels, wherever it is asked", async () => {
    const context = ray.getRuntimeContext();
    expect(context.getJobId()).toMatch(/^job-/);
    expect(context.getNodeLabels()).toEqual({ zone: "a", "ray.io/node-id": context.getNodeId() });
    const there = {
      jobId: context.getJobId(),
      nodeId: context.getNodeId(),
      nodeLabels: context.getNodeLabels(),
    };
    const actor = Sees.remote();
    expect(await ray.get([actor.now.remote(), seesTask.remote()])).toMatchObject([there, there]);
  });

  test("in a task has no actor", async () => {
    const ref = seesTask.options({ name: "look" }).remote();
    expect(await ray.get(ref)).toMatchObject({
      taskId: ref.id,
      taskName: "look",
      functionName: "seen",
      actorId: null,
    });
  });

  test("knows that the actor was restarted, and gives a handle of itself", async () => {
    const actor = Sees.options({ maxRestarts: 1 }).remote();
    await ray.get(actor.exit.remote()).catch(() => undefined);
    expect(await ray.get(actor.now.remote())).toMatchObject({ reconstructed: true });
    expect(await ray.get(actor.callSelf.remote())).toBe(1);
    expect(await ray.get(actor.canceledHere.remote())).toBe(false);
  });
});

describe.skipIf(!sharesMemory)("exitActor", () => {
  test("ends the actor: the call has no value, its hook runs, later calls fail", async () => {
    const hook = cell();
    const actor = Leaves.options({ maxRestarts: 5 }).remote(hook);
    await expect(ray.get(actor.leave.remote())).rejects.toMatchObject({
      code: "ACTOR_DIED",
      deathCause: { kind: "exit-actor" },
    });
    expect(Atomics.load(hook, 0)).toBe(1);
    await expect(ray.get(actor.hello.remote())).rejects.toBeInstanceOf(ray.ActorDiedError);
  });

  test("lets concurrent calls finish, and those in the queue fail", async () => {
    const actor = Leaves.remote(cell());
    const running = actor.wait.remote();
    const leaving = actor.openAndLeave.remote();
    const late = actor.hello.remote();
    expect(await ray.get(running)).toBe("finished");
    await expect(ray.get(leaving)).rejects.toBeInstanceOf(ray.ActorDiedError);
    await expect(ray.get(late)).rejects.toBeInstanceOf(ray.ActorDiedError);
  });

  test("works in a synchronous method, the first time and later", async () => {
    for (const before of [0, 3]) {
      const actor = LeavesSync.remote();
      for (let index = 0; index < before; index++) await ray.get(actor.hello.remote());
      const calls = [actor.hello.remote(), actor.leave.remote(), actor.hello.remote()] as const;
      expect(await ray.get(calls[0])).toBe("hello");
      await expect(ray.get(calls[1])).rejects.toBeInstanceOf(ray.ActorDiedError);
      await expect(ray.get(calls[2])).rejects.toBeInstanceOf(ray.ActorDiedError);
    }
  });

  test("__ray_terminate__ is queued behind earlier calls; kill runs no hook", async () => {
    const hook = cell();
    const actor = Leaves.remote(hook);
    const before = actor.hello.remote();
    const end = actor.__ray_terminate__.remote();
    expect(await ray.get(before)).toBe("hello");
    await expect(ray.get(end)).rejects.toMatchObject({ deathCause: { kind: "exit-actor" } });
    expect(Atomics.load(hook, 0)).toBe(1);
    const untouched = cell();
    const killed = Leaves.remote(untouched);
    await ray.get(killed.hello.remote());
    await ray.kill(killed);
    expect(Atomics.load(untouched, 0)).toBe(0);
  });

  test("outside an actor is refused", () => {
    expect(() => ray.exitActor()).toThrow("can only be called in a method of an actor");
  });
});
