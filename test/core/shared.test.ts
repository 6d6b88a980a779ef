import { randomUUID } from "node:crypto";
import { once } from "node:events";
import { inspect } from "node:util";
import { BroadcastChannel } from "node:worker_threads";
import { afterAll, beforeAll, describe, expect, onTestFinished, test, vi } from "vitest";
import * as ray from "@rayling/core";
import { Counter, Meeting } from "../fixtures/actors.ts";
import { sized } from "../fixtures/suite.ts";
import { NeverLoaded } from "../fixtures/never-loaded.ts";
import { Kindred, Light, type LightClass, MournedActor } from "../fixtures/shared.ts";

const shared = { isolation: "shared" } as const;
const Shared = Light.options(shared);

const caught = (ref: ray.ObjectRef): Promise<unknown> =>
  ray.get(ref).then(
    (value) => expect.fail(`expected a rejection, got ${String(value)}`),
    (error: unknown) => error,
  );

const idOf = (actor: object): string => /actor-\w+/.exec(inspect(actor))?.[0] ?? "";

describe("actors in a shared thread", () => {
  beforeAll(() => ray.init({ numCpus: 1, prewarm: 0 }));
  afterAll(() => ray.shutdown());

  test("are many, each with a state of its own", async () => {
    const actors = Array.from({ length: 300 }, (_, index) => Shared.remote(index));
    const sums = await ray.get(actors.map((actor) => actor.add.remote(1)));
    expect(sums).toEqual(actors.map((_, index) => index + 1));
    const threads = await ray.get(actors.map((actor) => actor.thread.remote()));
    expect(new Set(threads).size).toBe(1);
    expect(threads[0]).not.toBe(0);
  });

  test("call each other, and wait for each other, in one thread", async () => {
    const [left, right] = [Shared.remote(1), Shared.remote(2)];
    expect(await ray.get(left.ask.remote(right))).toBe(2);
    const counter = Counter.remote(5);
    expect(await ray.get(left.add.remote(counter.read.remote()))).toBe(6);
  });

  test("end alone when killed: queued and running calls reject, the others live on", async () => {
    const [victim, other] = [Shared.remote(), Shared.remote(7)];
    const running = victim.never.remote();
    const told = new BroadcastChannel("end alone");
    const heard = once(told, "message");
    const stopped = victim.untilAborted.remote(told.name);
    await ray.get([victim.add.remote(0), other.add.remote(0)]);
    const one = Meeting.options({ ...shared, maxConcurrency: 1 }).remote();
    const busy = one.never.remote();
    const queued = one.most.remote();
    await Promise.all([ray.kill(victim), ray.kill(one)]);
    for (const ref of [running, stopped, busy, queued, victim.add.remote(1)]) {
      expect(await caught(ref)).toMatchObject({
        code: "ACTOR_DIED",
        deathCause: { kind: "killed" },
      });
    }
    expect(await ray.get(other.add.remote(0))).toBe(7);
    // What went on in the dead one was told to stop.
    expect((await heard)[0]).toMatchObject({ data: "aborted" });
    told.close();
  });

  describe("are known by their own calls, not by those of others of their class", () => {
    const Alike = Kindred.options(shared);
    const newCell = (): Int32Array => new Int32Array(new SharedArrayBuffer(4));

    test("one that goes on is cancelled, and makes room", async () => {
      const near = Alike.remote();
      for (let call = 0; call < 3; call++) {
        expect(await ray.get(near.fetch.remote(newCell()))).toBe("near");
      }
      const far = Alike.remote(Shared.remote());
      const cell = newCell();
      const going = far.fetch.remote(cell);
      await Atomics.waitAsync(cell, 0, 0).value;
      ray.cancel(going);
      expect(await caught(going)).toBeInstanceOf(ray.TaskCancelledError);
      expect(await ray.get(far.isFree.remote())).toBe(true);
    });

    test("the answer of a quick one does not wait for a slow one", async () => {
      const [quick, slow] = [Alike.remote(), Alike.remote()];
      expect(await ray.get(slow.hold.remote(newCell(), 20))).toBe("timed-out");
      const set = newCell().fill(1);
      for (let call = 0; call < 3; call++) {
        expect(await ray.get(quick.hold.remote(set, 10_000))).toBe("not-equal");
      }
      const cell = newCell();
      const [answer, held] = [quick.hold.remote(set, 10_000), slow.hold.remote(cell, 10_000)];
      await ray.get(answer);
      Atomics.store(cell, 0, 1);
      Atomics.notify(cell, 0);
      expect(await ray.get(held)).not.toBe("timed-out");
    });

    test("a method that their class has got since is that of new ones", async () => {
      const older = Alike.remote();
      const word = await ray.get(older.word.remote());
      await ray.get(older.learn.remote(`${word}!`));
      expect(await ray.get(Alike.remote().word.remote())).toBe(`${word}!`);
      expect(await ray.get(older.word.remote())).toBe(word);
    });
  });

  test.each(["kill", "exit of the actor", "no handle left", "restart"] as const)(
    "take along what they have created, as a thread does: %s",
    async (how) => {
      let parent: ray.ActorHandle<LightClass> | undefined = Light.options({
        isolation: "shared",
        maxRestarts: how === "restart" ? 1 : 0,
      }).remote();
      const child = await ray.get(parent.create.remote({ isolation: "shared" }));
      const grandchild = await ray.get(child.create.remote({ isolation: "shared" }));
      const apart = await ray.get(parent.create.remote({ isolation: "thread" }));
      const detached = await ray.get(
        parent.create.remote({ isolation: "shared", lifetime: "detached", name: `kept ${how}` }),
      );
      if (how === "kill") await ray.kill(parent);
      else if (how === "restart") await ray.kill(parent, { noRestart: false });
      else if (how === "exit of the actor")
        await ray.get(parent.__ray_terminate__.remote()).catch(() => undefined);
      parent = undefined;
      const states = async (): Promise<string[]> => {
        globalThis.gc?.();
        const rows = await Promise.all(
          [child, grandchild, apart, detached].map(async (one) => ray.state.getActor(idOf(one))),
        );
        return rows.map((row) => row?.state ?? "none");
      };
      await expect.poll(states).toEqual(["DEAD", "DEAD", "DEAD", "ALIVE"]);
      // It is dead for the session a moment before its thread hears of it, which may take a last call.
      const outcome = (): Promise<unknown> =>
        ray.get(child.add.remote(1)).catch((error: unknown) => error);
      await expect.poll(outcome).toMatchObject({ deathCause: { kind: "owner-died" } });
      await ray.kill(detached);
    },
  );

  describe("create nothing after their end, though their code goes on", () => {
    const isUnknown = async (id: string): Promise<boolean> =>
      (await ray.state.getActor(id)) === undefined;
    const ends: Record<string, (ended: ray.ActorHandle<LightClass>) => Promise<void>> = {
      killed: (ended) => ray.kill(ended),
      "killed, and restarted": (ended) => ray.kill(ended, { noRestart: false }),
      "killed so long ago that no record of it is kept": async (ended) => {
        await ray.kill(ended);
        const id = idOf(ended);
        while (!(await isUnknown(id))) {
          const others = Array.from({ length: 250 }, () => Shared.remote());
          await Promise.all(others.map((other) => ray.kill(other)));
        }
      },
    };

    const made: [what: string, options: ray.ActorOptions][] = [
      ["an actor", {}],
      ["a detached actor", { lifetime: "detached" }],
    ];
    const cases = Object.keys(ends).flatMap((how) =>
      made.map(([what, options]) => ({ how, what, options })),
    );
    // Until no record of it is kept many others have to end: the gate waits for that once.
    const kinds = sized({ gate: cases.slice(0, -1), full: cases });
    test.each(kinds)("$what, $how", async ({ how, options }) => {
      const ended = Light.options({ ...shared, maxRestarts: how.includes("restart") ? 1 : 0 });
      const actor = ended.remote();
      const said = new BroadcastChannel(`after the end ${randomUUID()}`);
      const heard = once(said, "message");
      const cell = new Int32Array(new SharedArrayBuffer(4));
      const running = actor.createLater.remote(cell, said.name, options);
      await ray.get(actor.add.remote(0));
      await ends[how]?.(actor);
      await caught(running);
      // Its next life may create actors.
      if (how.includes("restart")) await ray.get(actor.create.remote(shared));
      Atomics.store(cell, 0, 1);
      Atomics.notify(cell, 0);
      const [{ data }] = (await heard) as [MessageEvent];
      expect(data).toBe("owner-died");
      said.close();
      const created = ray.state.listActors({ filters: [["name", "=", said.name]], detail: true });
      expect(await created).toMatchObject([{ state: "DEAD" }]);
    });
  });

  test.each(["killed", "exit-actor", "init-failed"] as const)(
    "are told of their end outside of calls, too: %s",
    async (kind) => {
      await ray.get(Shared.remote().add.remote(1));
      const told = new BroadcastChannel(`told ${kind}`);
      const heard = once(told, "message");
      const actor = MournedActor.options(shared).remote(told.name, kind === "init-failed");
      const isThere = ray.get(actor.isThere.remote()).catch(() => false);
      expect(await isThere).toBe(kind !== "init-failed");
      if (kind === "killed") await ray.kill(actor);
      if (kind === "exit-actor") void actor.__ray_terminate__.remote();
      const [{ data }] = (await heard) as [MessageEvent];
      expect(data).toBe(kind);
      told.close();
    },
  );

  test("that are restarted in the same thread get no calls of their former life", async () => {
    const actor = Light.options({ ...shared, maxRestarts: -1, maxTaskRetries: 0 }).remote();
    for (let life = 0; life < 20; life++) {
      expect(await ray.get(actor.add.remote(1))).toBe(1);
      const lost = [actor.never.remote(), actor.never.remote()];
      await ray.get(actor.add.remote(1));
      await ray.kill(actor, { noRestart: false });
      for (const ref of lost) expect(await caught(ref)).toBeInstanceOf(ray.ActorUnavailableError);
    }
    expect(await ray.get(actor.add.remote(1))).toBe(1);
  });

  test("that are killed while they are made never live", async () => {
    const early = Array.from({ length: 20 }, () => Shared.remote());
    const refs = early.map((actor) => actor.add.remote(1));
    await Promise.all(early.map((actor) => ray.kill(actor)));
    for (const ref of refs) expect(await caught(ref)).toBeInstanceOf(ray.ActorDiedError);
  });

  test("are made, called and ended while a test's timers stand still, and waits of them end", async () => {
    const known = Shared.remote();
    await ray.get(known.add.remote(0));
    onTestFinished(() => void vi.useRealTimers());
    vi.useFakeTimers();
    const late = { code: "GET_TIMEOUT" };
    await expect(ray.get(known.never.remote(), { timeoutMs: 1 })).rejects.toMatchObject(late);
    expect(await ray.get(Shared.remote(4).add.remote(1))).toBe(5);
    await ray.kill(known);
    // So much at once is collected in a later turn, for which each `get` waits.
    const big = Array.from({ length: 10 }, () => ray.put(new Uint8Array(16e6)));
    for (const ref of big) expect((await ray.get(ref)).length).toBe(16e6);
    await new ray.Queue().put(1);
    vi.useRealTimers();
    expect(await ray.get(Shared.remote(2).add.remote(1))).toBe(3);
  });

  test("whose module never finishes loading can be killed, and hold up no others", async () => {
    const stuck = NeverLoaded.options(shared).remote();
    const other = Shared.remote(3);
    expect(await ray.get(other.add.remote(0))).toBe(3);
    const ref = stuck.hello.remote();
    await ray.kill(stuck);
    expect(await caught(ref)).toBeInstanceOf(ray.ActorDiedError);
  });

  test("whose constructor throws die alone", async () => {
    const other = Shared.remote(4);
    const failing = Shared.remote(-1);
    expect(await caught(failing.add.remote(1))).toMatchObject({
      actorInitFailed: true,
      cause: { message: "less than nothing" },
    });
    expect(await ray.get(other.add.remote(0))).toBe(4);
  });

  test("may each have calls that never end, more than a session has credit for", async () => {
    const actors = Array.from({ length: 3000 }, () => Shared.remote());
    const never = actors.flatMap((actor) => [actor.never.remote(), actor.never.remote()]);
    const last = actors.map((actor) => actor.add.remote(1));
    expect(new Set(await ray.get(last))).toEqual(new Set([1]));
    expect((await ray.wait(never, { timeoutMs: 0 })).ready).toEqual([]);
    await Promise.all(actors.map((actor) => ray.kill(actor)));
  });

  describe("with a name", () => {
    const named = (threadName: string, options: ray.ActorOptions = {}): typeof Shared =>
      Light.options({ ...shared, ...options, threadName });
    const threadOf = (actor: ray.ActorHandle<LightClass>): Promise<number> =>
      ray.get(actor.thread.remote());
    /** Returns whether the actor's present thread lives. */
    const lifeOf = async (actor: object): Promise<() => Promise<boolean>> => {
      const row = await ray.state.getActor(idOf(actor));
      const workerId = row?.workerId ?? expect.fail("it is in no thread");
      return async () => {
        globalThis.gc?.();
        return (await ray.state.getWorker(workerId))?.isAlive ?? false;
      };
    };

    test("only those that give the same name share it", async () => {
      const actors = [
        named("a").remote(),
        named("a").remote(),
        named("b").remote(),
        Shared.remote(),
      ];
      const [a, alsoA, b, common] = await Promise.all(actors.map(threadOf));
      expect(alsoA).toBe(a);
      expect(new Set([a, b, common]).size).toBe(3);
    });

    test("others that hold their thread do not hold it up", async () => {
      const [holder, free] = [named("held").remote(), named("free").remote(2)];
      const cell = new Int32Array(new SharedArrayBuffer(4));
      const holding = holder.hold.remote(cell);
      await Atomics.waitAsync(cell, 0, 0).value;
      expect(await ray.get(free.add.remote(1))).toBe(3);
      await ray.kill(holder);
      expect(await caught(holding)).toMatchObject({ deathCause: { kind: "killed" } });
    });

    test.each(["kill", "exit of the actor", "no handle left"] as const)(
      "it ends with the last of its actors, and the next one gets another: %s",
      async (how) => {
        const name = randomUUID();
        let last: ray.ActorHandle<LightClass> | undefined = named(name).remote();
        const first = named(name).remote();
        const thread = await threadOf(last);
        expect(await threadOf(first)).toBe(thread);
        const isAlive = await lifeOf(last);
        await ray.kill(first);
        expect(await threadOf(last)).toBe(thread);
        if (how === "kill") await ray.kill(last);
        else if (how === "exit of the actor")
          await ray.get(last.__ray_terminate__.remote()).catch(() => undefined);
        last = undefined;
        await expect.poll(isAlive).toBe(false);
        expect(await threadOf(named(name).remote())).not.toBe(thread);
      },
    );

    test("one that is restarted alone begins in a new one", async () => {
      const actor = named(randomUUID(), { maxRestarts: 1 }).remote(1);
      const thread = await threadOf(actor);
      await ray.kill(actor, { noRestart: false });
      await expect.poll(() => ray.get(actor.add.remote(1)).catch(() => 0)).toBe(2);
      expect(await threadOf(actor)).not.toBe(thread);
    });

    test("one whose constructor throws leaves the others, and ends one of its own", async () => {
      const other = named("throws").remote(4);
      expect(await ray.get(other.add.remote(0))).toBe(4);
      const living = async (): Promise<string[]> =>
        (await ray.state.listWorkers({ filters: [["isAlive", "=", true]] })).map(
          ({ workerId }) => workerId,
        );
      const before = await living();
      for (const name of ["throws", "throws alone"]) {
        expect(await caught(named(name).remote(-1).add.remote(1))).toMatchObject({
          actorInitFailed: true,
        });
      }
      expect(await ray.get(other.add.remote(0))).toBe(4);
      const isNew = (id: string): boolean => !before.includes(id);
      await expect.poll(async () => (await living()).filter(isNew)).toEqual([]);
    });

    test("needs isolation shared", () => {
      for (const isolation of ["thread", "process", undefined] as const) {
        const options = isolation === undefined ? {} : { isolation };
        expect(() => Light.options({ ...options, threadName: "a" }).remote()).toThrow(
          'threadName names a thread that actors share, and needs isolation "shared"',
        );
      }
      expect(() => named("")).toThrow(ray.InvalidOptionError);
      expect(() => named(7 as never)).toThrow(ray.InvalidOptionError);
    });
  });

  test("cannot have settings of their own, and tasks cannot be shared", () => {
    const own = { ...shared, runtimeEnv: { env: { A: "b" } } };
    expect(() => Light.options(own).remote()).toThrow('isolation "shared" gives none');
    expect(() => ray.remote(() => 1, { isolation: "shared" as never })).toThrow(
      'option isolation must be "thread" or "process", not "shared"',
    );
    expect(() => Light.options({ isolation: "fork" as never }).remote()).toThrow(
      ray.InvalidOptionError,
    );
  });
});

describe("what ends a shared thread ends all in it", () => {
  beforeAll(() => ray.init({ numCpus: 1, prewarm: 0 }));
  afterAll(() => ray.shutdown());

  test.each<[string, (actor: ray.ActorHandle<{ exit(): void; crash(): void }>) => void, string]>([
    ["process.exit", (actor) => void actor.exit.remote(), "exited"],
    ["an uncaught exception", (actor) => void actor.crash.remote(), "uncaught-exception"],
  ])("%s: each by its own policy, and the cause says so", async (_name, end, kind) => {
    const first = Shared.remote(1);
    const second = Shared.remote(2);
    const third = Light.options({ ...shared, maxRestarts: 1, maxTaskRetries: 1 }).remote(3);
    await ray.get([first, second, third].map((actor) => actor.add.remote(1)));
    const running = [second.never.remote(), third.add.remote(2)];
    end(first);
    const error = (await caught(running[0] as ray.ObjectRef)) as ray.ActorDiedError;
    expect(error.deathCause.kind).toBe(kind);
    expect(error.message).toMatch(/\d actors shared the thread/);
    expect(await caught(first.add.remote(1))).toMatchObject({ deathCause: { kind } });
    expect(await ray.get(third.add.remote(5))).toBeGreaterThan(4);
  });

  test("killing one that holds the thread ends the thread, in the end", async () => {
    const [holder, other] = [
      Shared.remote(),
      Light.options({ ...shared, maxRestarts: 1 }).remote(),
    ];
    await ray.get(other.add.remote(1));
    const cell = new Int32Array(new SharedArrayBuffer(4));
    const holding = holder.hold.remote(cell);
    await Atomics.waitAsync(cell, 0, 0).value;
    await ray.kill(holder);
    expect(await caught(holding)).toMatchObject({ deathCause: { kind: "killed" } });
    expect(await ray.get(other.add.remote(1))).toBe(1);
  });
});

test("there are as many shared threads as CPUs, when there is work for them", async () => {
  await ray.init({ numCpus: 2, prewarm: 0 });
  const few = Array.from({ length: 50 }, () => Shared.remote());
  expect(new Set(await ray.get(few.map((actor) => actor.thread.remote()))).size).toBe(1);
  const many = Array.from({ length: 400 }, () => Shared.remote());
  const threads = await ray.get([...few, ...many].map((actor) => actor.thread.remote()));
  const counts = [...new Set(threads)].map((id) => threads.filter((one) => one === id).length);
  expect(counts).toHaveLength(2);
  expect(Math.abs((counts[0] ?? 0) - (counts[1] ?? 0))).toBeLessThan(10);
  await ray.shutdown();
});
