/** Streams that their consumer leaves, in every way: their producer ends, its `finally` runs once, and it holds nothing up. RAYLING_STREAMS_SEED chooses another run. */
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import * as ray from "@rayling/core";
import { double, Endless, endless, type Ended, Never, Notes } from "../fixtures/endless.ts";
import { together } from "../fixtures/isolation.ts";
import { sized } from "../fixtures/suite.ts";
import { seededRandom } from "../servers/seeded.ts";

beforeAll(() => ray.init({ numCpus: 2, prewarm: 0, ...together }));
afterAll(() => ray.shutdown());

const seed = Number(process.env["RAYLING_STREAMS_SEED"] ?? 20_261_125);
const rounds = sized({ gate: 40, full: 400 });

class Enough extends Error {}

type Stream = ray.ObjectRefGenerator<number>;

/** Takes so many items and leaves; what it returns stays good. */
type Way = (stream: Stream, takes: number) => Promise<readonly ray.ObjectRef<number>[]>;

async function taken(stream: Stream, takes: number): Promise<ray.ObjectRef<number>[]> {
  const refs: ray.ObjectRef<number>[] = [];
  while (refs.length < takes) refs.push((await stream.next()).value as ray.ObjectRef<number>);
  return refs;
}

const ways: Readonly<Record<string, Way>> = {
  "return()": async (stream, takes) => {
    const refs = await taken(stream, takes);
    expect(await stream.return()).toEqual({ done: true, value: undefined });
    return refs;
  },
  "throw()": async (stream, takes) => {
    const refs = await taken(stream, takes);
    await expect(stream.throw(new Enough())).rejects.toBeInstanceOf(Enough);
    return refs;
  },
  break: async (stream, takes) => {
    const refs: ray.ObjectRef<number>[] = [];
    if (takes === 0) await stream.return();
    for await (const ref of stream) if (refs.push(ref) >= takes) break;
    return refs;
  },
  "an error in the loop": async (stream, takes) => {
    const refs: ray.ObjectRef<number>[] = [];
    const loop = async (): Promise<void> => {
      for await (const ref of stream) if (refs.push(ref) >= takes) throw new Enough();
    };
    await expect(loop()).rejects.toBeInstanceOf(Enough);
    return refs;
  },
  "a return from the loop": async (stream, takes) => {
    const refs: ray.ObjectRef<number>[] = [];
    const loop = async (): Promise<number> => {
      for await (const ref of stream) if (refs.push(ref) >= takes) return refs.length;
      return -1;
    };
    await loop();
    return refs;
  },
  "the collector": (stream, takes) => taken(stream, takes),
};

/** It is so at some time, while garbage is collected. */
async function becomes(look: () => Promise<unknown>, expected: unknown): Promise<void> {
  await expect
    .poll(
      () => {
        globalThis.gc?.();
        return look();
      },
      { interval: 5 },
    )
    .toMatchObject(expected as object);
}

const random = seededRandom(seed);
const pick = <T>(list: readonly T[]): T => list[Math.floor(random() * list.length)] as T;

interface Round {
  readonly kind: "busy" | "awaiting" | "held" | "listening" | "task";
  readonly way: string;
  readonly takes: number;
  readonly ahead: number | undefined;
}

const all: readonly Round[] = Array.from({ length: rounds }, () => {
  const kind = pick(["busy", "awaiting", "held", "listening", "task"] as const);
  const most = { busy: 5, awaiting: 5, held: 2, listening: 1, task: 3 }[kind];
  return {
    kind,
    way: pick(Object.keys(ways)),
    takes: 1 + Math.floor(random() * most),
    ahead: pick([undefined, 1, 2]),
  };
});

test.each(all)("$kind, left by $way after $takes, $ahead ahead", async (round) => {
  const { kind, way, takes, ahead } = round;
  const options = ahead === undefined ? {} : { generatorBackpressureNumObjects: ahead };
  const leave = ways[way] as Way;
  if (kind === "task") {
    const notes = Notes.remote();
    const asTask = endless.options({ numCpus: 2, ...options });
    const refs = await leave(asTask.remote(notes), takes);
    await becomes(() => ray.get(notes.ended.remote()), { begun: 1, closed: 1 });
    // Its CPUs are free.
    expect(await ray.get(double.options({ numCpus: 2 }).remote(4))).toBe(8);
    await expectGood(refs, 0);
    await expectStill(() => ray.get(notes.ended.remote()));
    return;
  }
  const actor = Endless.remote();
  const never = { ref: Never.remote().answer.remote() };
  const start = (): Stream =>
    kind === "held"
      ? actor.held.options(options).remote(never)
      : actor[kind].options(options).remote();
  const refs = await leave(start(), takes);
  // The next call of the actor runs, which takes one at a time: the generator is over.
  await collected(actor.ended.remote());
  expect(await ray.get(actor.ended.remote())).toMatchObject({ begun: 1, closed: 1 });
  await expectGood(refs, 1);
  await expectStill(() => ray.get(actor.ended.remote()));
});

/** Waits for it while garbage is collected. */
async function collected(ref: ray.ObjectRef<Ended>): Promise<void> {
  await becomes(async () => ({ ready: (await ray.wait([ref], { timeoutMs: 0 })).ready.length }), {
    ready: 1,
  });
}

async function expectGood(refs: readonly ray.ObjectRef<number>[], from: number): Promise<void> {
  expect(await ray.get(refs)).toEqual(refs.map((_, index) => from + index));
}

async function expectStill(look: () => Promise<Ended>): Promise<void> {
  const before = await look();
  for (let turn = 0; turn < 5; turn++) expect(await look()).toEqual(before);
}

describe("a stream that is left", () => {
  test("before it began has begun nothing", async () => {
    const actor = Endless.remote();
    const never = { ref: Never.remote().answer.remote() };
    const running = actor.held.remote(never);
    await running.next();
    const waiting = actor.busy.remote();
    await waiting.return();
    await running.return();
    expect(await ray.get(actor.ended.remote())).toMatchObject({ begun: 1, closed: 1 });
    expect(await ray.get(waiting.completed())).toBe(0);
  });

  test("is completed with as many items as it has given, and is not a failure", async () => {
    const stream = Endless.remote().busy.options({ generatorBackpressureNumObjects: 3 }).remote();
    const refs = await taken(stream, 2);
    await stream.return();
    expect(await ray.get(stream.completed())).toBeGreaterThanOrEqual(2);
    await expectGood(refs, 1);
    expect(await stream.next()).toEqual({ done: true, value: undefined });
    expect(stream.isFinished()).toBe(true);
  });

  test("and is detached runs on to its end, without back-pressure", async () => {
    const { Streaming } = await import("../fixtures/calls.ts");
    const actor = Streaming.remote();
    const stream = actor.count
      .options({ generatorBackpressureNumObjects: 2, detached: true })
      .remote(100);
    for await (const _ of stream) break;
    expect(await ray.get(stream.completed())).toBe(100);
    expect(await ray.get(actor.made.remote())).toEqual({ made: 100, closed: 1 });
  });

  test("after it was cancelled stays cancelled", async () => {
    const stream = Endless.remote().awaiting.remote();
    await stream.next();
    ray.cancel(stream);
    await stream.return();
    await expect(ray.get(stream.completed())).rejects.toBeInstanceOf(ray.TaskCancelledError);
  });
});
