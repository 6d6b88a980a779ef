import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test } from "vitest";
import * as ray from "@rayling/core";
import { Context, contextOfTask, same, Signal } from "../fixtures/conformance.ts";
import { initIn, alike } from "../fixtures/isolations.ts";
import { PoolWorker, type WorkerClass } from "../fixtures/utilities.ts";

type Worker = ray.ActorHandle<WorkerClass>;

const workers = (count: number): Worker[] =>
  Array.from({ length: count }, () => PoolWorker.remote());
const double = (actor: Worker, value: number): ray.ObjectRef<number> => actor.double.remote(value);
const gated = (actor: Worker, value: number): ray.ObjectRef<number> => actor.gated.remote(value);

describe.each(alike)("utilities: %s", (isolation) => {
  beforeAll(() => initIn(isolation));
  afterAll(() => ray.shutdown());

  test("test_actor_pool: getNext gives results in the order of submission", async () => {
    const pool = new ray.ActorPool(workers(2));
    for (let value = 0; value < 5; value++) pool.submit(double, value);
    for (let value = 0; value < 5; value++) expect(await pool.getNext()).toBe(2 * value);
    expect(pool.hasNext()).toBe(false);
    await expect(pool.getNext()).rejects.toThrow(ray.NoMoreResultsError);
  });

  test("test_actor_pool: getNextUnordered gives each result once, as they come", async () => {
    const pool = new ray.ActorPool(workers(2));
    for (let value = 0; value < 5; value++) pool.submit(double, value);
    const results = new Set<unknown>();
    while (pool.hasNext()) results.add(await pool.getNextUnordered());
    expect(results).toEqual(new Set([0, 2, 4, 6, 8]));
  });

  test("test_actor_pool: map is ordered, mapUnordered is complete", async () => {
    const pool = new ray.ActorPool(workers(2));
    const values = [0, 1, 2, 3, 4];
    expect(await Array.fromAsync(pool.map(double, values))).toEqual([0, 2, 4, 6, 8]);
    const unordered = await Array.fromAsync(pool.mapUnordered(double, values));
    expect(new Set(unordered)).toEqual(new Set([0, 2, 4, 6, 8]));
  });

  test("test_actor_pool: map is not held up by an earlier submission, and does not give its result", async () => {
    const pool = new ray.ActorPool(workers(2));
    pool.submit(gated, 6);
    expect(await Array.fromAsync(pool.map(double, [1, 2, 3, 4, 5]))).toEqual([2, 4, 6, 8, 10]);
  });

  test("test_actor_pool: a timeout is an error; ignored, the result is given up and the actor is back", async () => {
    const actors = workers(1);
    const pool = new ray.ActorPool(actors);
    pool.submit(gated, 1);
    await expect(pool.getNext({ timeoutMs: 10 })).rejects.toThrow(ray.GetTimeoutError);
    expect(pool.hasNext()).toBe(true);
    const ignored = { timeoutMs: 10, ignoreIfTimedOut: true };
    await expect(pool.getNextUnordered(ignored)).rejects.toThrow(ray.GetTimeoutError);
    expect([pool.hasNext(), pool.hasFree()]).toEqual([false, true]);
  });

  test("test_actor_pool: push refuses a duplicate, popIdle gives actors that are free", async () => {
    const actors = workers(2);
    const pool = new ray.ActorPool(actors);
    expect(() => pool.push(actors[0] as Worker)).toThrow(ray.InvalidOptionError);
    pool.submit(double, 1);
    expect(pool.hasFree()).toBe(true);
    pool.submit(double, 1);
    expect(pool.hasFree()).toBe(false);
    await pool.getNext();
    const free = pool.popIdle() as Worker;
    expect(pool.popIdle()).toBeUndefined();
    expect(await ray.get(free.double.remote(4))).toBe(8);
    pool.push(free);
    expect(pool.hasFree()).toBe(true);
  });
});

describe.each(alike)("runtime context: %s", (isolation) => {
  beforeAll(() => initIn(isolation, { namespace: "context" }));
  afterAll(() => ray.shutdown());

  test("test_runtime_context: the driver has no task and no actor, an actor and a task know their ids", async () => {
    const context = ray.getRuntimeContext();
    expect([context.getTaskId(), context.getActorId(), context.getActorName()]).toEqual([
      null,
      null,
      null,
    ]);
    const actor = Context.options({ name: "named" }).remote();
    const [first, second] = await ray.get([actor.ids.remote(), actor.ids.remote()]);
    expect(first).toMatchObject({ namespace: "context", actorName: "named" });
    expect(first["actor"]).toMatch(/^actor-/);
    expect([first["constructed"], second["actor"]]).toEqual([first["actor"], first["actor"]]);
    expect(second["worker"]).toBe(first["worker"]);
    expect(second["task"]).not.toBe(first["task"]);
    const ref = contextOfTask.options({ name: "a task" }).remote();
    expect(await ray.get(ref)).toMatchObject({
      namespace: "context",
      actor: null,
      task: ref.id,
      taskName: "a task",
    });
    const unnamed = await ray.get(Context.remote().ids.remote());
    expect(unnamed["actorName"]).toBe("");
    expect((await ray.get(actor.taskIds.remote()))["actor"]).toBeNull();
  });

  test("test_runtime_context: an actor knows that it was restarted, and reaches itself", async () => {
    const actor = Context.options({ maxRestarts: 1 }).remote();
    expect(await ray.get(actor.isFresh.remote())).toBe(true);
    expect(await ray.get(actor.callsItself.remote())).toBe(true);
    await expect(ray.get(actor.exit.remote())).rejects.toThrow(ray.ActorUnavailableError);
    expect(await ray.get(actor.isFresh.remote())).toBe(false);
    expect(await ray.get(actor.callsItself.remote())).toBe(false);
  });
});

describe.each(alike)("resources: %s", (isolation) => {
  beforeEach(() => initIn(isolation, { numCpus: 4, resources: { custom: 1 } }));
  afterEach(() => ray.shutdown());

  test("test_runtime_context: an actor knows what it holds: nothing by default, else what it asked for", async () => {
    expect(await ray.get(Context.remote().assigned.remote())).toEqual({});
    const four = Context.options({ numCpus: 4 }).remote();
    expect(await ray.get(four.assigned.remote())).toEqual({ CPU: 4 });
  });

  test("test_basic::test_submit_api: a task that needs what no node has is not ready, and no error", async () => {
    const infeasible = same.options({ resources: { absent: 1 } }).remote(1);
    const { ready, pending } = await ray.wait([infeasible], { timeoutMs: 50 });
    expect([ready, pending]).toEqual([[], [infeasible]]);
    expect(await ray.get(same.options({ resources: { custom: 1 } }).remote(2))).toBe(2);
  });

  test("test_basic::test_ray_options: what an actor holds is missing while it lives; options override", async () => {
    const before = await ray.clusterResources();
    const Held = Signal.options({ numCpus: 2, resources: { custom: 0.25 } });
    const first = Held.remote();
    const second = Held.options({ numCpus: 1 }).remote();
    await ray.get([first.waiting.remote(), second.waiting.remote()]);
    expect(await ray.availableResources()).toMatchObject({ CPU: 1, custom: 0.5 });
    await ray.kill(first);
    await ray.kill(second);
    expect(await ray.availableResources()).toEqual(before);
  });

  test("test_basic_3::test_many_fractional_resources: any mix of fractions runs, and all comes back", async () => {
    const fractions = Array.from({ length: 40 }, (_, index) => ((index * 7) % 10) / 10 + 0.1);
    const tasks = fractions.map((part) =>
      same.options({ numCpus: part, resources: { custom: Math.min(1, part) } }).remote(part),
    );
    expect(await ray.get(tasks)).toEqual(fractions);
    await expect
      .poll(() => ray.availableResources(), { timeout: 60_000 })
      .toEqual(await ray.clusterResources());
  });

  test("test_actor_advanced::test_kill_pending_actor_with_no_restart_true: a killed actor that waited asks for nothing any more", async () => {
    const pending = Signal.options({ resources: { custom: 2 } }).remote();
    const call = pending.waiting.remote();
    await ray.kill(pending);
    await expect(ray.get(call)).rejects.toMatchObject({ deathCause: { kind: "killed" } });
    await new ray.Cluster().addNode({ resources: { custom: 2 } });
    expect(await ray.availableResources()).toMatchObject({ custom: 3 });
  });

  test("test_actor_advanced::test_kill_pending_actor_with_no_restart_false: one that may restart waits again, once", async () => {
    const pending = Signal.options({ resources: { custom: 2 }, maxRestarts: 1 }).remote();
    const call = pending.waiting.remote();
    await ray.kill(pending, { noRestart: false });
    expect((await ray.wait([call], { timeoutMs: 50 })).ready).toEqual([]);
    await ray.kill(pending, { noRestart: false });
    await expect(ray.get(call)).rejects.toMatchObject({ deathCause: { kind: "killed" } });
  });
});
