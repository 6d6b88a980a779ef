import { afterAll, beforeAll, describe, expect, test } from "vitest";
import * as ray from "@rayling/core";
import { apart, together } from "../fixtures/isolation.ts";
import { sized } from "../fixtures/suite.ts";
import {
  consume,
  newMoments,
  produce,
  QueueHolder,
  QueueUser,
  QueueWaiter,
  type QueueWait,
  waitsInQueue,
} from "../fixtures/utilities.ts";
import { seededRandom } from "../servers/seeded.ts";

beforeAll(() => ray.init({ numCpus: 4, prewarm: 0, ...together }));
afterAll(() => ray.shutdown());

/** Resolves when a call to that queue that was made before waits inside it, or is over. */
const reached = async (queue: ray.Queue): Promise<void> => void (await queue.size());

describe("a queue", () => {
  test("gives items in the order they were put", async () => {
    const queue = new ray.Queue<number>();
    for (let item = 0; item < 100; item++) void queue.put(item);
    const items = await Promise.all(Array.from({ length: 100 }, () => queue.get()));
    expect(items).toEqual(Array.from({ length: 100 }, (_, item) => item));
  });

  test("knows its size, and whether it is empty or full", async () => {
    const queue = new ray.Queue<string>({ maxsize: 2 });
    expect([await queue.size(), await queue.empty(), await queue.full()]).toEqual([0, true, false]);
    await queue.put("a");
    expect([await queue.size(), await queue.empty(), await queue.full()]).toEqual([
      1,
      false,
      false,
    ]);
    await queue.put("b");
    expect([await queue.size(), await queue.empty(), await queue.full()]).toEqual([2, false, true]);
    const unbounded = new ray.Queue();
    await unbounded.putNowaitBatch(Array.from({ length: 2000 }, (_, index) => index));
    expect([await unbounded.size(), await unbounded.full()]).toEqual([2000, false]);
  });

  test("keeps refs refs, and what undefined and null are", async () => {
    const queue = new ray.Queue();
    const ref = ray.put("inside");
    for (const item of [ref, undefined, null, [ref]]) await queue.put(item);
    const back = (await queue.get()) as ray.ObjectRef<string>;
    expect(back).toBeInstanceOf(ray.ObjectRef);
    expect(await ray.get(back)).toBe("inside");
    expect([await queue.get(), await queue.get()]).toEqual([undefined, null]);
    const [nested] = (await queue.get()) as [ray.ObjectRef<string>];
    expect(await ray.get(nested)).toBe("inside");
  });

  test("refuses what cannot travel, and is as it was", async () => {
    const queue = new ray.Queue();
    await expect(queue.put(() => 1)).rejects.toMatchObject({ code: "NOT_ENCODABLE" });
    await expect(queue.putNowaitBatch([1, () => 1])).rejects.toThrow(ray.NotEncodableError);
    expect(await queue.size()).toBe(0);
  });
});

describe("putting to a full queue", () => {
  test("waits until there is room, each in turn", async () => {
    const queue = new ray.Queue<string>({ maxsize: 1 });
    const done: string[] = [];
    const puts = ["a", "b", "c"].map(async (item) => {
      await queue.put(item);
      done.push(item);
    });
    await reached(queue);
    expect(await queue.size()).toBe(1);
    expect(await queue.get()).toBe("a");
    await expect(queue.putNowait("d")).rejects.toThrow(ray.Full);
    expect([await queue.get(), await queue.get()]).toEqual(["b", "c"]);
    await Promise.all(puts);
    expect(done).toEqual(["a", "b", "c"]);
  });

  test("without waiting rejects with Full, also as a TaskError, and puts nothing", async () => {
    const queue = new ray.Queue<string>({ maxsize: 1 });
    await queue.putNowait("a");
    for (const late of [
      () => queue.putNowait("b"),
      () => queue.put("b", { block: false }),
      () => queue.put("b", { timeoutMs: 0 }),
      () => queue.put("b", { timeoutMs: 5 }),
    ]) {
      const error = await late().catch((caught: unknown) => caught);
      expect(error).toBeInstanceOf(ray.Full);
      expect(error).toBeInstanceOf(ray.RayError);
      expect(error).toMatchObject({ name: "Full", code: "QUEUE_FULL", maxsize: 1 });
    }
    expect(await queue.get()).toBe("a");
    expect(await queue.empty()).toBe(true);
  });

  test("in a batch puts all or none", async () => {
    const queue = new ray.Queue<number>({ maxsize: 3 });
    await queue.putNowaitBatch([1, 2]);
    await expect(queue.putNowaitBatch([3, 4])).rejects.toThrow("2 more do not fit to the 2 in it");
    expect(await queue.size()).toBe(2);
    await queue.putNowaitBatch(new Set([3]));
    expect(await queue.getNowaitBatch(3)).toEqual([1, 2, 3]);
  });
});

describe("getting from an empty queue", () => {
  test("waits for an item, each in turn", async () => {
    const queue = new ray.Queue<number>();
    const gets = [queue.get(), queue.get(), queue.get({ timeoutMs: 60_000 })];
    await reached(queue);
    await queue.putNowaitBatch([1, 2, 3, 4]);
    expect(await Promise.all(gets)).toEqual([1, 2, 3]);
    expect(await queue.size()).toBe(1);
  });

  test("without waiting rejects with Empty, and takes nothing later", async () => {
    const queue = new ray.Queue<string>();
    for (const late of [
      () => queue.getNowait(),
      () => queue.get({ block: false }),
      () => queue.get({ timeoutMs: 0 }),
      () => queue.get({ timeoutMs: 5 }),
      () => queue.getNowaitBatch(1),
    ]) {
      const error = await late().catch((caught: unknown) => caught);
      expect(error).toBeInstanceOf(ray.Empty);
      expect(error).toMatchObject({ name: "Empty", code: "QUEUE_EMPTY" });
    }
    await queue.put("kept");
    expect(await queue.size()).toBe(1);
    expect(await queue.getNowait()).toBe("kept");
  });

  test("in a batch takes all or none", async () => {
    const queue = new ray.Queue<number>();
    await queue.putNowaitBatch([1, 2, 3]);
    await expect(queue.getNowaitBatch(4)).rejects.toThrow("4 were asked for, 3 are in it");
    expect(await queue.getNowaitBatch(0)).toEqual([]);
    expect(await queue.getNowaitBatch(2)).toEqual([1, 2]);
    expect(await queue.size()).toBe(1);
  });

  test("holds up nobody: thousands wait, and an item still comes through", async () => {
    const queue = new ray.Queue<number>();
    const gets = Array.from({ length: 5000 }, () => queue.get());
    await reached(queue);
    expect(await queue.empty()).toBe(true);
    await queue.putNowaitBatch(Array.from({ length: 5000 }, (_, index) => index));
    expect(await Promise.all(gets)).toEqual(Array.from({ length: 5000 }, (_, index) => index));
  });
});

describe("bad input", () => {
  test.each<[string, (queue: ray.Queue<number>) => Promise<unknown>]>([
    ["timeoutMs", (queue) => queue.put(1, { timeoutMs: -1 })],
    ["timeoutMs", (queue) => queue.get({ timeoutMs: -0.5 })],
    ["timeoutMs", (queue) => queue.get({ timeoutMs: Number.NaN })],
    ["timeoutMs", (queue) => queue.get({ timeoutMs: -1, block: false })],
    ["block", (queue) => queue.get({ block: 1 as never })],
    ["timeout", (queue) => queue.get({ timeout: 1 } as never)],
    ["numItems", (queue) => queue.getNowaitBatch(-1)],
    ["numItems", (queue) => queue.getNowaitBatch(1.5)],
    ["items", (queue) => queue.putNowaitBatch(5 as never)],
    ["items", (queue) => queue.putNowaitBatch("text" as never)],
    ["gracePeriodMs", (queue) => queue.shutdown({ gracePeriodMs: -1 })],
  ])("%s is refused by name", async (option, call) => {
    const queue = new ray.Queue<number>();
    await expect(call(queue)).rejects.toMatchObject({ code: "INVALID_OPTION", option });
    expect(await queue.size()).toBe(0);
  });

  test("of the constructor throws", () => {
    expect(() => new ray.Queue({ maxsize: -1 })).toThrow("maxsize");
    expect(() => new ray.Queue({ maxSize: 1 } as never)).toThrow('no option "maxSize"');
    expect(() => new ray.Queue({ actorOptions: { maxConcurrency: 1 } as never })).toThrow(
      "must leave maxConcurrency to the queue",
    );
    expect(() => new ray.Queue({ actorOptions: { nam: "x" } as never })).toThrow("nam");
  });
});

describe("a queue travels", () => {
  test("as an argument, inside one, and as a result, and is the same queue", async () => {
    const holder = QueueHolder.remote();
    const inside = await ray.get(holder.queue.remote());
    expect(inside).toBeInstanceOf(ray.Queue);
    await ray.get(holder.putLater.remote(inside, "from the holder"));
    expect(await inside.get()).toBe("from the holder");
    const queues = [new ray.Queue<string>(), inside];
    const both = holder.nested.remote({ queues });
    await inside.put("b");
    await queues[0]?.put("a");
    expect(await ray.get(both)).toEqual(["a", "b"]);
    const stored = await ray.get(ray.put({ inside }));
    await inside.put("stored");
    expect(await stored.inside.get()).toBe("stored");
  });

  test("by its name, which many may race for", async () => {
    const actorOptions = { name: "the queue", getIfExists: true };
    const queues = Array.from({ length: 3 }, () => new ray.Queue<number>({ actorOptions }));
    await Promise.all(queues.map((queue, index) => queue.put(index)));
    expect(await queues[2]?.getNowaitBatch(3)).toHaveLength(3);
  });

  test("between producers and consumers: nothing is lost or doubled, and each producer's items keep their order", async () => {
    const queue = new ray.Queue<string>({ maxsize: 4 });
    const consumers = [consume.remote(queue), consume.remote(queue)];
    await ray.get(["p", "q"].map((name) => produce.remote(queue, name, 100)));
    for (const _ of consumers) await queue.put("done");
    const consumed = await ray.get(consumers);
    for (const name of ["p", "q"]) {
      for (const items of consumed) {
        const numbers = items.filter((item) => item.startsWith(name)).map((item) => +item.slice(2));
        expect(numbers).toEqual(numbers.toSorted((left, right) => left - right));
      }
    }
    expect(new Set(consumed.flat()).size).toBe(200);
    expect(consumed.flat()).toHaveLength(200);
  });
});

describe("a call that runs out of time leaves nothing behind", () => {
  // Times and gaps from a generator with a seed, around the same few milliseconds, so that items and ends of waits meet.
  test.each(sized({ gate: [1], full: [1, 2, 3] }))(
    "puts and gets with times that meet, seed %i: every item that went in comes out, once and in order",
    async (seed) => {
      const queue = new ray.Queue<number>({ maxsize: 2 });
      const next = seededRandom(seed);
      const last = -1;
      const put: number[] = [];
      const got: number[] = [];
      const producer = async (): Promise<void> => {
        for (let item = 0; item < 300; item++) {
          try {
            await queue.put(item, { timeoutMs: Math.floor(next() * 3) });
            put.push(item);
          } catch (error) {
            expect(error).toBeInstanceOf(ray.Full);
          }
          if (next() < 0.3) await pause(next() * 3);
        }
        await queue.put(last);
      };
      const consumer = async (): Promise<void> => {
        for (;;) {
          try {
            const item = await queue.get({ timeoutMs: Math.floor(next() * 3) });
            if (item === last) return;
            got.push(item);
          } catch (error) {
            expect(error).toBeInstanceOf(ray.Empty);
          }
          if (next() < 0.3) await pause(next() * 3);
        }
      };
      await Promise.all([producer(), consumer()]);
      expect(got).toEqual(put);
      expect(await queue.empty()).toBe(true);
      expect(put.length).toBeGreaterThan(0);
    },
  );

  test("many consumers that give up and come back lose nothing between them", async () => {
    const queue = new ray.Queue<string>({ maxsize: 1 });
    const consumers = [1, 2].map((timeoutMs) => consume.remote(queue, timeoutMs));
    await ray.get(["p", "q"].map((name) => produce.remote(queue, name, 150, 1)));
    // In line behind the last items, and not out of time.
    for (const _ of consumers) await queue.put("done");
    const consumed = (await ray.get(consumers)).flat();
    expect(new Set(consumed).size).toBe(300);
    expect(consumed).toHaveLength(300);
  });
});

/** The actor behind a queue. */
interface Inside {
  get(timeoutMs: number | undefined): unknown;
  put(item: readonly [unknown], timeoutMs: number | undefined): unknown;
  quiet(): Promise<void>;
}

interface WaitCase {
  readonly kind: QueueWait;
  readonly from: "task" | "actor";
  readonly recursive: boolean;
}

describe("a call that is cancelled leaves nothing behind", () => {
  let name = 0;
  const named = async (maxsize: number): Promise<[ray.Queue<string>, ray.ActorHandle<Inside>]> => {
    const actorOptions = { name: `queue ${name++}` };
    const queue = new ray.Queue<string>({ maxsize, actorOptions });
    await reached(queue);
    return [queue, await ray.getActor<Inside>(actorOptions.name)];
  };
  const isCancelled = async (ref: ray.ObjectRef): Promise<void> => {
    await expect(ray.get(ref)).rejects.toBeInstanceOf(ray.TaskCancelledError);
  };

  test.each([undefined, 1_000_000])("where it waits, timeoutMs %s", async (timeoutMs) => {
    const [queue, inside] = await named(1);
    const get = inside.get.remote(timeoutMs);
    await reached(queue);
    ray.cancel(get);
    await isCancelled(get);
    await queue.put("kept");
    expect(await queue.size()).toBe(1);
    const put = inside.put.remote(["never"], timeoutMs);
    await reached(queue);
    ray.cancel(put);
    await isCancelled(put);
    expect(await queue.get()).toBe("kept");
    expect(await queue.size()).toBe(0);
    await ray.get(inside.quiet.remote());
  });

  test("and those beside it in the line keep their places", async () => {
    const [queue, inside] = await named(0);
    const [first, second, third] = [1, 2, 3].map(() => inside.get.remote(undefined));
    await reached(queue);
    ray.cancel(second as ray.ObjectRef);
    await isCancelled(second as ray.ObjectRef);
    await queue.putNowaitBatch(["a", "b", "c"]);
    expect(await ray.get([first, third] as ray.ObjectRef[])).toEqual(["a", "b"]);
    expect(await queue.size()).toBe(1);
  });

  const kinds: readonly QueueWait[] = [
    "get",
    "get with time",
    "put",
    "put with time",
    "late get",
    "late put",
  ];
  const callers = (recursive: boolean, from: "task" | "actor"): WaitCase[] =>
    kinds.map((kind) => ({ kind, from, recursive }));
  const some = [...callers(true, "task"), ...callers(false, "actor")];
  const others = [...callers(false, "task"), ...callers(true, "actor")];
  test.each(sized({ gate: some, full: [...some, ...others] }))(
    "of a cancelled $from: $kind, recursive $recursive",
    async ({ kind, from, recursive }) => {
      const [queue, inside] = await named(1);
      const isGet = kind.includes("get");
      // A late one would have what it asks for.
      const before = isGet === kind.startsWith("late") ? ["kept"] : [];
      await queue.putNowaitBatch(before);
      const moments = newMoments();
      const call =
        from === "task"
          ? waitsInQueue.remote(kind, queue, moments)
          : QueueWaiter.options({ numCpus: 0 }).remote().waits.remote(kind, queue, moments);
      await ray.get(moments.there.wait.remote());
      ray.cancel(call, { recursive });
      await isCancelled(call);
      await ray.get(inside.quiet.remote());
      if (kind.startsWith("late")) await ray.get(moments.over.wait.remote());
      if (isGet && before.length === 0) await queue.put("kept");
      expect(await queue.size()).toBe(kind === "late put" ? 0 : 1);
      if (kind !== "late put") expect(await queue.get()).toBe("kept");
      expect(await queue.size()).toBe(0);
    },
  );
});

describe("a call that is cancelled while its answer is under way", () => {
  const cell = (): Int32Array => new Int32Array(new SharedArrayBuffer(4));
  const cases = ([true, false] as const).flatMap((recursive) =>
    (["get", "put"] as const).map((kind) => ({ kind, recursive })),
  );
  test.each(sized({ gate: cases.slice(0, 2), full: cases }))(
    "is over, $kind, and the next wait rejects, recursive $recursive",
    async ({ kind, recursive }) => {
      await using queue = new ray.Queue<string>({ maxsize: 1 });
      if (kind === "put") await queue.put("kept");
      const user = QueueUser.options({ numCpus: 0, ...apart }).remote();
      const call = user.uses.remote(kind, queue);
      await ray.get(user.reached.remote(queue));
      const [started, release] = [cell(), cell()];
      user.hold.remote(started, release);
      await Atomics.waitAsync(started, 0, 0).value;
      // The queue answers the call here, and its caller cannot hear of it.
      if (kind === "get") await queue.put("given");
      else expect(await queue.get()).toBe("kept");
      ray.cancel(call, { recursive });
      // The cancellation is sent.
      expect(await queue.size()).toBe(kind === "get" ? 0 : 1);
      Atomics.store(release, 0, 1);
      Atomics.notify(release, 0);
      await expect(ray.get(call)).rejects.toBeInstanceOf(ray.TaskCancelledError);
      const first = kind === "get" ? "get given" : "put done";
      expect(await ray.get(user.outcome.remote())).toEqual([first, "TaskCancelledError"]);
      if (kind === "put") expect(await queue.get()).toBe("of the cancelled");
      expect(await queue.size()).toBe(0);
    },
  );

  test("that was not sent, because the queue has no place yet, rejects at once", async () => {
    // One of them has all CPUs, or waits for them: the other one waits behind it.
    const actorOptions = { numCpus: 4 };
    await using first = new ray.Queue<string>({ actorOptions });
    await using second = new ray.Queue<string>({ actorOptions });
    const user = QueueUser.options({ numCpus: 0 }).remote();
    const call = user.uses.remote("get", second);
    const outcome = user.outcome.remote();
    await ray.get(user.__ray_ready__.remote());
    ray.cancel(call);
    await expect(ray.get(call)).rejects.toBeInstanceOf(ray.TaskCancelledError);
    expect(await ray.get(outcome)).toEqual(["TaskCancelledError", "goes on"]);
    for (const queue of [first, second]) await queue.shutdown({ force: true });
  });
});

describe("a caller that dies takes no item with it, and puts none", () => {
  const kinds = ["get", "put"] as const;
  const cases = (["thread", "process", "shared"] as const).flatMap((isolation) =>
    kinds.map((kind) => ({ isolation, kind })),
  );
  test.each(sized({ gate: cases.slice(0, 3), full: cases }))(
    "with isolation $isolation, while it waits in $kind",
    async ({ isolation, kind }) => {
      const actorOptions = { name: `queue of the dead: ${kind} in a ${isolation}` };
      await using queue = new ray.Queue<string>({ maxsize: 1, actorOptions });
      if (kind === "put") await queue.put("kept");
      const inside = await ray.getActor<Inside>(actorOptions.name);
      const moments = newMoments();
      const waiter = QueueWaiter.options({ numCpus: 0, isolation }).remote();
      const call = waiter.waits.remote(kind, queue, moments);
      await ray.get(moments.there.wait.remote());
      await ray.kill(waiter);
      await expect(ray.get(call)).rejects.toBeInstanceOf(ray.ActorDiedError);
      await ray.get(inside.quiet.remote());
      if (kind === "get") await queue.put("kept");
      expect([await queue.size(), await queue.get(), await queue.size()]).toEqual([1, "kept", 0]);
    },
  );
});

describe("shutdown", () => {
  test("ends the queue, for everybody, once", async () => {
    const queue = new ray.Queue<number>();
    await queue.put(1);
    const [other] = await ray.get(ray.put([queue] as const));
    await queue.shutdown();
    await expect(queue.get()).rejects.toThrow(ray.ActorDiedError);
    await expect(other.put(1)).rejects.toThrow(ray.ActorDiedError);
    await queue.shutdown();
    await queue.shutdown({ force: true });
  });

  test("lets calls that wait finish within the grace period", async () => {
    const queue = new ray.Queue<number>({ maxsize: 1 });
    const waiting = queue.get();
    await reached(queue);
    const ended = queue.shutdown({ gracePeriodMs: 60_000 });
    await queue.put(7);
    expect(await waiting).toBe(7);
    await ended;
    await expect(queue.size()).rejects.toThrow(ray.ActorDiedError);
  });

  test("ends those that still wait after it, and with force at once", async () => {
    for (const options of [{ gracePeriodMs: 1 }, { force: true }]) {
      const queue = new ray.Queue<number>();
      const waiting = expect(queue.get()).rejects.toThrow(ray.ActorDiedError);
      await reached(queue);
      await queue.shutdown(options);
      await waiting;
    }
  });
});

/** Not to wait for anything, but to shift the producer against the consumer. */
function pause(ms: number): Promise<void> {
  return new Promise((resolve) => setTimeout(resolve, ms));
}
