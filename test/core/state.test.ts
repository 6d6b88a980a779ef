import { inspect } from "node:util";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import * as ray from "@rayling/core";
import { double, Gate, type GateClass, hold, Seer } from "../fixtures/inside.ts";
import { isAlone, sharesMemory } from "../fixtures/isolation.ts";

beforeAll(() => ray.init({ numCpus: 2, prewarm: 0, taskEvents: true, stuckWarningMs: 0 }));
afterAll(() => ray.shutdown());

const cell = (): Int32Array => new Int32Array(new SharedArrayBuffer(4));
const becomes = async (of: Int32Array, value: number): Promise<void> => {
  for (let now = Atomics.load(of, 0); now !== value; now = Atomics.load(of, 0)) {
    await Atomics.waitAsync(of, 0, now).value;
  }
};
const wake = (of: Int32Array): void => {
  Atomics.store(of, 0, 1);
  Atomics.notify(of, 0);
};
async function startGate(): Promise<ray.ActorHandle<GateClass>> {
  const gate = Gate.remote();
  await ray.get(gate.quick.remote());
  return gate;
}
const idOf = (actor: object): string => /actor-\w+/.exec(inspect(actor))?.[0] ?? "";
const stateOf = async (ref: ray.ObjectRef): Promise<string | undefined> =>
  (await ray.state.getTask(ref.id))?.state;
/** Asks until it is so: what a host knows changes while it is asked. */
const stateBecomes = async (ref: ray.ObjectRef, state: string): Promise<void> => {
  while ((await stateOf(ref)) !== state) await new Promise((resolve) => setImmediate(resolve));
};

describe("listActors", () => {
  test("shows living, pending and dead actors with Ray's columns and states", async () => {
    const alive = Gate.options({ name: "the gate" }).remote();
    await ray.get(alive.quick.remote());
    const pending = Gate.options({ resources: { nowhere: 1 } }).remote();
    const dead = await startGate();
    await ray.kill(dead);
    const rows = await ray.state.listActors({ detail: true });
    const rowOf = (actor: object): ray.state.ActorRow | undefined =>
      rows.find(({ actorId }) => actorId === idOf(actor));
    expect(rowOf(alive)).toMatchObject({
      className: "GateClass",
      state: "ALIVE",
      name: "the gate",
      numRestarts: 0,
      runningCalls: 0,
      queuedCalls: 0,
    });
    expect(rowOf(alive)?.workerId).toMatch(/^host-/);
    expect(rowOf(pending)).toMatchObject({ state: "PENDING_CREATION" });
    expect(rowOf(pending)?.pendingReason).toContain("nowhere");
    expect(rowOf(dead)).toMatchObject({
      state: "DEAD",
      deathCause: "it was killed by ray.kill",
    });
    await ray.kill(pending);
  });

  test("filters by equal and not equal, limits, and leaves details out unless asked", async () => {
    const gates = [await startGate(), await startGate()];
    const alive = await ray.state.listActors({
      filters: [
        ["state", "=", "alive"],
        ["className", "!=", "Seer"],
      ],
      limit: 1,
    });
    expect(alive).toHaveLength(1);
    expect(alive.total).toBeGreaterThan(1);
    expect(alive.missing).toEqual([]);
    expect(alive[0]).not.toHaveProperty("numRestarts");
    const [row] = alive;
    expect(await ray.state.getActor(row?.actorId ?? "")).toMatchObject({ numRestarts: 0 });
    expect(await ray.state.getActor("actor-nobody")).toBeUndefined();
    await Promise.all(gates.map((gate) => ray.kill(gate)));
  });

  test("works inside an actor", async () => {
    const names = await ray.get(Seer.remote().actors.remote());
    expect(names).toContain("Seer");
    expect(names).toContain("GateClass");
    expect(await ray.get(Seer.remote().refused.remote())).toMatch(/^INVALID_OPTION .*"colour"/);
  });
});

describe("listTasks", () => {
  test("shows what waits for an argument, in a mailbox, runs, and waits in a get", async () => {
    const gate = await startGate();
    const [running, queued] = [gate.pass.remote(1), gate.pass.remote(2)];
    const waiting = double.remote(running as ray.ObjectRef<number>);
    const inGet = Seer.remote().wait.remote(gate);
    await stateBecomes(running, "RUNNING");
    await stateBecomes(queued, "PENDING_ACTOR_TASK_ORDERING_OR_CONCURRENCY");
    await stateBecomes(waiting, "PENDING_ARGS_AVAIL");
    await stateBecomes(inGet, "RUNNING_IN_RAY_GET");
    expect(await ray.state.getTask(queued.id)).toMatchObject({
      name: "GateClass.pass",
      type: "ACTOR_TASK",
      actorId: idOf(gate),
    });
    const child = (await ray.state.listTasks({ filters: [["parentTaskId", "=", inGet.id]] }))[0];
    expect(child?.name).toBe("GateClass.pass");
    expect(child?.ownerId).toMatch(/^host-/);
    await ray.kill(gate);
    await ray.wait([running, queued, waiting, inGet], { numReturns: 4 });
    expect(await stateOf(running)).toBe("FAILED");
  });

  test("shows what waits for an actor that is not there", async () => {
    const pending = Gate.options({ resources: { nowhere: 1 } }).remote();
    const call = pending.quick.remote();
    expect(await stateOf(call)).toBe("PENDING_NODE_ASSIGNMENT");
    await ray.kill(pending);
    await ray.wait([call]);
  });

  test.runIf(sharesMemory)(
    "shows what waits for a worker, and names the host that is silent",
    async () => {
      const cells = [cell(), cell()];
      const release = cell();
      const holding = cells.map((started) => hold.remote(started, release));
      for (const started of cells) await becomes(started, 1);
      const task = double.remote(2);
      const rows = await ray.state.listTasks({ timeoutMs: 200 });
      expect(rows.find(({ taskId }) => taskId === task.id)?.state).toBe("PENDING_NODE_ASSIGNMENT");
      expect(rows.missing.length).toBeGreaterThanOrEqual(2);
      wake(release);
      expect(await ray.get([task, ...holding])).toEqual([4, "released", "released"]);
    },
  );

  test("shows what has ended, with its times and its error", async () => {
    const gate = await startGate();
    const [good, bad] = [gate.quick.remote(1), gate.fail.remote("on purpose")];
    await ray.wait([good, bad], { numReturns: 2 });
    const row = await ray.state.getTask(good.id);
    expect(row).toMatchObject({ state: "FINISHED", type: "ACTOR_TASK", errorType: undefined });
    const { creationTimeMs = 0, startTimeMs = 0, endTimeMs = 0 } = row ?? {};
    expect(creationTimeMs).toBeGreaterThan(Date.UTC(2020));
    expect(startTimeMs).toBeGreaterThanOrEqual(creationTimeMs);
    expect(endTimeMs).toBeGreaterThanOrEqual(startTimeMs);
    expect(await ray.state.getTask(bad.id)).toMatchObject({
      state: "FAILED",
      errorType: "RangeError",
      errorMessage: "on purpose",
    });
    await expect(ray.get(bad)).rejects.toThrow("on purpose");
  });

  test("shows a cancelled call as such", async () => {
    const gate = await startGate();
    const running = gate.pass.remote();
    const queued = gate.pass.remote();
    ray.cancel(queued);
    await ray.wait([queued]);
    expect(await stateOf(queued)).toBe("CANCELLED");
    await ray.kill(gate);
    await ray.wait([running]);
  });
});

describe("other lists", () => {
  test("objects: what others hold, what is big, what is not ready", async () => {
    const gate = await startGate();
    const big = ray.put(new Uint8Array(1 << 20));
    const pending = gate.pass.remote(big);
    await stateBecomes(pending, "RUNNING");
    const rows = await ray.state.listObjects({ detail: true, limit: 10_000 });
    const rowOf = (ref: ray.ObjectRef): ray.state.ObjectRow | undefined =>
      rows.find(({ objectId }) => objectId === ref.id);
    expect(rowOf(big)).toMatchObject({ name: "put", taskStatus: "FINISHED", type: "DRIVER" });
    expect(rowOf(big)?.objectSize).toBeGreaterThanOrEqual(1 << 20);
    expect(rowOf(pending)).toMatchObject({ name: "GateClass.pass", objectSize: -1 });
    await ray.kill(gate);
    await ray.wait([pending]);
  });

  test("nodes, workers and placement groups", async () => {
    const gate = await startGate();
    const [head] = await ray.state.listNodes({ detail: true });
    expect(head).toMatchObject({ state: "ALIVE", isHeadNode: true });
    expect(head?.resourcesTotal["CPU"]).toBe(2);
    const actor = await ray.state.getActor(idOf(gate));
    expect(await ray.state.getWorker(actor?.workerId ?? "")).toMatchObject({
      isAlive: true,
      workerType: "WORKER",
      nodeId: head?.nodeId,
    });
    await ray.kill(gate);
    // A worker that actors share outlives them.
    expect(await ray.state.getWorker(actor?.workerId ?? "")).toMatchObject(
      isAlone
        ? { isAlive: false, exitType: "killed", exitDetail: "it was killed by ray.kill" }
        : { isAlive: true },
    );
    expect(await ray.state.listWorkers({ filters: [["workerType", "=", "DRIVER"]] })).toHaveLength(
      1,
    );
    expect(await ray.state.listPlacementGroups()).toEqual([]);
  });

  test("summaries count by name and state", async () => {
    const gate = await startGate();
    const refs = [gate.pass.remote(), gate.pass.remote()];
    const { byName } = await ray.state.summarizeActors();
    expect(byName["GateClass"]?.["ALIVE"]).toBeGreaterThanOrEqual(1);
    await stateBecomes(refs[0] as ray.ObjectRef, "RUNNING");
    const tasks = await ray.state.summarizeTasks();
    expect(tasks.byName["GateClass.pass"]).toMatchObject({
      RUNNING: 1,
      PENDING_ACTOR_TASK_ORDERING_OR_CONCURRENCY: 1,
    });
    expect((await ray.state.summarizeObjects()).total).toBeGreaterThan(0);
    await ray.kill(gate);
    await ray.wait(refs, { numReturns: 2 });
  });
});

test.each([
  [{ filters: [["colour", "=", "red"]] }, /cannot be filtered by "colour"; .*className/],
  [{ filters: [["state", "<", 1]] }, /must compare by/],
  [{ filters: "state=ALIVE" }, /must be a list/],
  [{ limit: 10_001 }, /at most 10000/],
  [{ limit: 0 }, /limit must be/],
  [{ timeoutMs: 0 }, /timeoutMs must be/],
  [{ sort: "name" }, /no option "sort"/],
])("bad options are refused: %j", async (options, message) => {
  const failed = ray.state.listActors(options as never);
  await expect(failed).rejects.toBeInstanceOf(ray.InvalidOptionError);
  await expect(ray.state.listActors(options as never)).rejects.toThrow(message);
});
