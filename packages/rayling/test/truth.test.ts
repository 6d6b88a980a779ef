/**
 * What `rayling list` and `rayling status` show while actors, calls, objects, groups and machines come and go, against a model.
 *
 * The model knows of each thing in which states it may be: one where that is certain, several while something is done to it. What a command shows must have
 * been so at some moment between its start and its end. RAYLING_TRUTH_SEED and RAYLING_TRUTH_ROUNDS choose another run; a failure names its seed.
 */
import type { ChildProcess } from "node:child_process";
import { once } from "node:events";
import { join } from "node:path";
import { setTimeout } from "node:timers/promises";
import * as ray from "rayling";
import { afterEach, expect, test, vi } from "vitest";
import { seededRandom } from "../../../test/servers/seeded.ts";
import { folder, shown, start } from "./command.ts";
import { json, ownDirectory } from "./driver.ts";
import { type Life, Seen, type SeenClass } from "./fixtures/seen.ts";
import { sized } from "../../../test/fixtures/suite.ts";

const seed = Number(process.env["RAYLING_TRUTH_SEED"] ?? 20_261_122);
/** How often each command is run. */
const rounds = Number(process.env["RAYLING_TRUTH_ROUNDS"] ?? sized({ gate: 1, full: 3 }));
/** Each has an actor of its own, does one thing after the other to it, and makes a new one when it has ended. */
const lanes = sized({ gate: 3, full: 6 });
const cpusEach = 0.25;
/** It is over when the commands have been asked, however slow the machine is. */
const limitMs = 600_000;
const settled = { timeout: 60_000, interval: 50 };

type Row = Readonly<Record<string, unknown>>;
interface Rows {
  readonly rows: readonly Row[];
}
interface Status {
  readonly actors: Readonly<Record<string, number>>;
  readonly placementGroups: Readonly<Record<string, number>>;
  readonly nodes: readonly (Row & {
    readonly resources: Readonly<Record<string, { readonly used: number }>>;
  })[];
}

/** Whole numbers below a bound, the same for the same seed. */
function generator(state: number): (count: number) => number {
  const random = seededRandom(state);
  return (count) => Math.floor(random() * count);
}

/** There is no row. */
const none = "none";
const starting = ["PENDING_CREATION", "DEPENDENCIES_UNREADY"];
const anyTaskState = [
  none,
  "PENDING_ARGS_AVAIL",
  "PENDING_NODE_ASSIGNMENT",
  "SUBMITTED_TO_WORKER",
  "PENDING_ACTOR_TASK_ORDERING_OR_CONCURRENCY",
  "RUNNING",
];

/** Things of one kind, by what their rows have for a key. */
class Model {
  readonly #histories: Map<string, { readonly at: number; readonly states: readonly string[] }[]> =
    new Map();

  /** From now on it is in one of these. */
  set(key: string, ...states: readonly string[]): void {
    const history = this.#histories.get(key) ?? [{ at: -Infinity, states: [none] }];
    history.push({ at: performance.now(), states });
    this.#histories.set(key, history);
  }

  has(key: string): boolean {
    return this.#histories.has(key);
  }

  /** What each may have been at some moment since then. */
  since(from: number): ReadonlyMap<string, ReadonlySet<string>> {
    return new Map(
      [...this.#histories].map(([key, history]) => {
        const first = Math.max(
          0,
          history.findLastIndex(({ at }) => at <= from),
        );
        return [key, new Set(history.slice(first).flatMap(({ states }) => states))];
      }),
    );
  }
}

class Session {
  readonly actors: Model = new Model();
  readonly calls: Model = new Model();
  readonly objects: Model = new Model();
  readonly groups: Model = new Model();
  readonly nodes: Model = new Model();
  readonly workers: Model = new Model();
  /** By the name of the actor: where it certainly is, since when, and how often it was restarted. */
  readonly lives: Map<string, Life & { readonly restarts: number; readonly since: number }> =
    new Map();
  isOver = false;
  done = 0;
  compared = 0;

  /** The actor is alive, and where it says that it is. */
  async hears(name: string, actor: ray.ActorHandle<SeenClass>, restarts: number): Promise<Life> {
    const life = await ray.get(actor.where.remote());
    this.actors.set(name, "ALIVE");
    this.workers.set(life.workerId, "true");
    this.lives.set(name, { ...life, restarts, since: performance.now() });
    return life;
  }

  /** Each of them was so, none is left out, and nothing is shown that was never there. */
  check(what: string, from: number, model: Model, found: ReadonlyMap<string, string>): void {
    const wrong = [...model.since(from)].flatMap(([key, allowed]) => {
      const state = found.get(key) ?? none;
      if (allowed.has(state)) return [];
      return [`${key} is shown as ${state}, not ${[...allowed].join(" or ")}`];
    });
    for (const key of found.keys()) if (!model.has(key)) wrong.push(`${key} was never there`);
    expect(wrong, `${what}, seed ${seed}`).toEqual([]);
    this.compared += found.size;
  }

  /** As many as are certainly in a state at least, as many as may be in it at most. */
  checkCounts(from: number, model: Model, counts: Readonly<Record<string, number>>): void {
    const allowed = [...model.since(from).values()];
    for (const [state, count] of Object.entries(counts)) {
      const may = allowed.filter((states) => states.has(state));
      const must = may.filter(({ size }) => size === 1);
      const bounds = `${state}, seed ${seed}`;
      expect(count, bounds).toBeGreaterThanOrEqual(must.length);
      expect(count, bounds).toBeLessThanOrEqual(may.length);
    }
  }
}

interface Command {
  readonly words: readonly string[];
  /** @param from when it was begun */
  readonly check: (session: Session, from: number, answer: never) => void;
}

/** By the column that says which it is, the column that says how it is. */
const columnOf = ({ rows }: Rows, key: string, state = "state"): Map<string, string> =>
  new Map(rows.map((row) => [String(row[key]), String(row[state])]));

const all = ["--limit", "10000"];

const commands: readonly Command[] = [
  {
    words: ["list", "actors", "--detail", ...all],
    check(session, from, answer: Rows) {
      session.check("actors", from, session.actors, columnOf(answer, "name"));
      for (const row of answer.rows) {
        const life = session.lives.get(String(row["name"]));
        if (life === undefined || life.since > from) continue;
        const { actorId, nodeId, workerId, pid, restarts: numRestarts } = life;
        expect(row).toMatchObject({ actorId, nodeId, workerId, pid, numRestarts });
      }
    },
  },
  {
    words: ["list", "tasks", "--filter", "name=SeenClass.hold", ...all],
    check(session, from, answer: Rows) {
      session.check("calls", from, session.calls, columnOf(answer, "actorId"));
    },
  },
  {
    words: ["list", "objects", "--filter", "name=put", ...all],
    check(session, from, answer: Rows) {
      session.check("objects", from, session.objects, columnOf(answer, "objectId", "name"));
    },
  },
  {
    words: ["list", "placement-groups", ...all],
    check(session, from, answer: Rows) {
      session.check("groups", from, session.groups, columnOf(answer, "placementGroupId"));
    },
  },
  {
    words: ["list", "nodes", ...all],
    check(session, from, answer: Rows) {
      session.check("nodes", from, session.nodes, columnOf(answer, "nodeId"));
    },
  },
  {
    words: ["list", "workers", ...all],
    check(session, from, answer: Rows) {
      // Hosts start before anybody knows of them.
      const known = answer.rows.filter(({ workerId }) => session.workers.has(String(workerId)));
      session.check(
        "workers",
        from,
        session.workers,
        columnOf({ rows: known }, "workerId", "isAlive"),
      );
    },
  },
  {
    words: ["status"],
    check(session, from, { actors, placementGroups, nodes }: Status) {
      session.checkCounts(from, session.actors, actors);
      session.checkCounts(from, session.groups, placementGroups);
      session.check("nodes", from, session.nodes, columnOf({ rows: nodes }, "nodeId"));
      const certain = [...session.actors.since(from).values()].filter(
        (allowed) => allowed.size === 1 && allowed.has("ALIVE"),
      );
      expect(cpusIn(nodes)).toBeGreaterThanOrEqual(certain.length * cpusEach);
    },
  },
];

const cpusIn = (nodes: Status["nodes"]): number =>
  nodes.reduce((sum, { resources }) => sum + (resources["CPU"]?.used ?? 0), 0);

/** One actor after the other, and one thing after the other done to it. */
async function actorLane(session: Session, lane: number, pick: (count: number) => number) {
  for (let life = 0; !session.isOver; life++) await oneActor(session, `${lane}.${life}`, pick);
}

async function oneActor(
  session: Session,
  name: string,
  pick: (count: number) => number,
): Promise<void> {
  const isolation = (["thread", "process", "shared"] as const)[pick(3)] ?? "thread";
  const isRestarted = isolation !== "shared" && pick(2) === 0;
  session.actors.set(name, none, ...starting, "ALIVE");
  const actor = Seen.options({
    name,
    isolation,
    numCpus: cpusEach,
    resources: { home: 0.01 },
    maxRestarts: isRestarted ? -1 : 0,
    maxConcurrency: 4,
  }).remote();
  let at = await session.hears(name, actor, 0);
  let restarts = 0;
  let held: ray.ObjectRef<void> | undefined;

  /** Whatever it held has come to nothing. */
  const isGone = async (): Promise<void> => {
    if (held !== undefined) await ray.get(held).catch(() => undefined);
    session.calls.set(at.actorId ?? "", none);
  };
  const ends = async (how: () => Promise<unknown>): Promise<void> => {
    session.lives.delete(name);
    session.actors.set(name, "ALIVE", "DEAD");
    if (isolation !== "shared") session.workers.set(at.workerId, "true", "false", none);
    session.calls.set(at.actorId ?? "", ...anyTaskState);
    await how();
    await expect(ray.get(actor.where.remote())).rejects.toThrow(ray.ActorDiedError);
    session.actors.set(name, "DEAD");
    await isGone();
  };
  const restarted = async (how: () => Promise<unknown>): Promise<void> => {
    session.lives.delete(name);
    session.actors.set(name, "ALIVE", "RESTARTING", ...starting);
    session.workers.set(at.workerId, "true", "false", none);
    session.calls.set(at.actorId ?? "", ...anyTaskState);
    await how();
    await isGone();
    held = undefined;
    const before = at.workerId;
    while (at.workerId === before) {
      const next = await ray.get(actor.where.remote()).catch(() => at);
      if (next.workerId !== before) at = await session.hears(name, actor, (restarts += 1));
    }
  };
  const dies = isRestarted ? restarted : ends;
  const signalled = (): Promise<unknown> => {
    process.kill(at.pid, "SIGKILL");
    return ray.get(actor.__ray_ready__.remote()).catch(() => undefined);
  };

  while (!session.isOver) {
    session.done += 1;
    switch (pick(8)) {
      case 0:
        return ends(() => ray.kill(actor));
      case 1:
        // It waits for calls that run.
        if (held !== undefined) break;
        return ends(() => ray.get(actor.leave.remote()).catch(() => undefined));
      case 2:
        if (isolation === "shared") break;
        await dies(() => ray.get(actor.crash.remote()).catch(() => undefined));
        if (!isRestarted) return;
        break;
      case 3:
        if (isolation !== "process") break;
        await dies(signalled);
        if (!isRestarted) return;
        break;
      case 4:
      case 5:
        if (held === undefined) {
          session.calls.set(at.actorId ?? "", ...anyTaskState);
          held = actor.hold.remote();
          expect(await ray.get(actor.isHolding.remote())).toBe(true);
          session.calls.set(at.actorId ?? "", "RUNNING");
        } else {
          session.calls.set(at.actorId ?? "", ...anyTaskState);
          await ray.get(actor.release.remote());
          await isGone();
          held = undefined;
        }
        break;
      default:
        await ray.get(actor.where.remote());
    }
  }
  await ends(() => ray.kill(actor));
}

/** Objects, groups and nodes of this process: made, and dropped again. */
async function thingsLane(session: Session, pick: (count: number) => number): Promise<void> {
  const cluster = new ray.Cluster();
  const kept: ray.ObjectRef[] = [];
  while (!session.isOver) {
    session.done += 1;
    const ref = ray.put(new Uint8Array(100_000));
    kept.push(ref);
    session.objects.set(ref.id, "put");
    // When it goes is the collector's business.
    if (kept.length > 20) session.objects.set(kept.shift()?.id ?? "", "put", none);
    const group = ray.placementGroup([{ CPU: 0.1, home: 0.01 }]);
    session.groups.set(group.id, none, "PENDING", "CREATED");
    await ray.get(group.ready());
    session.groups.set(group.id, "CREATED");
    const { nodeId } = await cluster.addNode({ numCpus: 1 });
    session.nodes.set(nodeId, "ALIVE");
    // Others have their turn, and commands a chance to see it.
    await setTimeout(pick(200));
    session.nodes.set(nodeId, "ALIVE", "DEAD");
    await cluster.removeNode({ nodeId });
    session.nodes.set(nodeId, "DEAD");
    session.groups.set(group.id, "CREATED", "PENDING", "RESCHEDULING", "REMOVED");
    await ray.removePlacementGroup(group);
    session.groups.set(group.id, "REMOVED");
  }
}

/** Actors on a machine that is there until it is killed. */
async function machineLane(
  session: Session,
  { nodeName, child }: Machine,
  isTime: Promise<void>,
): Promise<void> {
  const named = async (): Promise<ray.NodeInfo | undefined> =>
    (await ray.nodes()).find((node) => node.nodeName === nodeName);
  const nodeId = (await named())?.nodeId ?? "";
  session.nodes.set(nodeId, "ALIVE");
  const names = ["a", "b"].map((one) => `${nodeName}.${one}`);
  const placed = names.map((name) => {
    session.actors.set(name, none, ...starting, "ALIVE");
    return Seen.options({ name, numCpus: cpusEach, resources: { [nodeName]: 0.1 } }).remote();
  });
  await Promise.all(
    placed.map(async (actor, index) => {
      const life = await session.hears(names[index] ?? "", actor, 0);
      expect(life.nodeId).toBe(nodeId);
    }),
  );
  await isTime;
  session.nodes.set(nodeId, "ALIVE", "DEAD");
  for (const name of names) {
    session.workers.set(session.lives.get(name)?.workerId ?? "", "true", "false", none);
    session.lives.delete(name);
    session.actors.set(name, "ALIVE", "DEAD");
  }
  const gone = once(child, "exit");
  child.kill("SIGKILL");
  await gone;
  await Promise.all(
    placed.map(async (actor, index) => {
      await untilDead(actor);
      session.actors.set(names[index] ?? "", "DEAD");
    }),
  );
  await vi.waitFor(async () => expect((await named())?.alive).toBe(false), settled);
  session.nodes.set(nodeId, "DEAD");
}

/** Its host ends when it hears that its agent has, and may answer until then. */
async function untilDead(actor: ReturnType<typeof Seen.remote>): Promise<void> {
  for (;;) {
    const error = await ray.get(actor.where.remote()).then(
      () => undefined,
      (reason: unknown) => reason,
    );
    if (error === undefined) continue;
    expect(error).toBeInstanceOf(ray.ActorDiedError);
    return;
  }
}

interface Machine {
  readonly nodeName: string;
  readonly child: ChildProcess;
  readonly address: string;
}

const children: ChildProcess[] = [];
afterEach(async () => {
  await ray.shutdown();
  for (const child of children.splice(0)) child.kill("SIGKILL");
});

async function machine(nodeName: string): Promise<Machine> {
  const flags = ["--listen", "127.0.0.1:0", "--name", nodeName, "--num-cpus", "1"];
  const tokenFile = join(await folder(), "token");
  const resources = ["--resources", `${nodeName}=1`];
  const { child } = start("node", ...flags, ...resources, "--token-file", tokenFile);
  children.push(child);
  const [, address = ""] = await shown({ child }, /RAYLING_NODES=(\S+)\n/);
  return { nodeName, child, address };
}

test(
  `status and lists show the truth during chaos (seed ${seed})`,
  async () => {
    await ownDirectory();
    const machines = await Promise.all([machine("one"), machine("two")]);
    await ray.init({
      numCpus: 8,
      prewarm: 0,
      resources: { home: 100 },
      stuckWarningMs: 0,
      // Commands write to the same streams.
      logToDriver: false,
      // So long a machine that was killed is not taken for lost.
      reconnectTimeoutMs: 3000,
      nodes: machines.map(({ address }) => address),
    });
    const session = new Session();
    session.nodes.set(ray.getRuntimeContext().getNodeId(), "ALIVE");
    const pick = generator(seed);
    const times = machines.map(() => Promise.withResolvers<void>());
    const running = Promise.all([
      ...Array.from({ length: lanes }, (_, lane) =>
        actorLane(session, lane, generator(seed + 1 + lane)),
      ),
      thingsLane(session, generator(seed - 1)),
      ...machines.map((one, index) => machineLane(session, one, times[index]?.promise as never)),
    ]);
    const asking = (async () => {
      for (let round = 0; round < rounds; round++) {
        // In one of the rounds each machine is killed while the commands run.
        const killed = times.filter(() => round === pick(rounds) || round === rounds - 1);
        for (const { resolve } of killed) resolve();
        for (const { words, check } of commands) {
          const from = performance.now();
          check(session, from, (await json(...words)) as never);
        }
      }
    })().finally(() => (session.isOver = true));
    await Promise.all([running, asking]);
    // Everything has ended, and what it held is free again.
    await vi.waitFor(async () => {
      const { nodes, actors } = (await json("status")) as Status;
      expect(cpusIn(nodes)).toBe(0);
      expect(actors).toMatchObject({ ALIVE: 0, RESTARTING: 0, PENDING_CREATION: 0 });
    }, settled);
    console.log(`truth: ${session.done} things done, ${session.compared} rows compared`);
  },
  limitMs,
);
