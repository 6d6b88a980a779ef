import { afterAll, beforeAll, describe, expect, test } from "vitest";
import * as ray from "@rayling/core";
import {
  Counter,
  Giver,
  givesAtOnce,
  givesLater,
  same,
  Signal,
  Stream,
  StreamReader,
  type Then,
  UserError,
} from "../fixtures/conformance.ts";
import { beside, initIn, withinAndApart } from "../fixtures/isolations.ts";

/** What a stream gives, failures as they are. */
async function settled(stream: ray.ObjectRefGenerator): Promise<unknown[]> {
  const seen: unknown[] = [];
  for await (const ref of stream) seen.push(await ray.get(ref).catch((error: unknown) => error));
  return seen;
}

describe.each(withinAndApart)("streams: %s", (isolation) => {
  beforeAll(() => initIn(isolation));
  afterAll(() => ray.shutdown());

  test("test_streaming_generator::test_generator_basic: items come in order, then the end", async () => {
    const stream = Stream.remote().five.remote();
    expect(await settled(stream)).toEqual([0, 1, 2, 3, 4]);
    expect(await stream.next()).toMatchObject({ done: true });
    expect(stream.isFinished()).toBe(true);
  });

  test("test_streaming_generator::test_generator_basic: an error after two items is a ref that rejects, then the end for ever", async () => {
    const stream = Stream.remote().failAt.remote(2);
    const [first, second, third, ...rest] = await settled(stream);
    expect([first, second, rest]).toEqual([0, 1, []]);
    expect(third).toBeInstanceOf(UserError);
    for (let again = 0; again < 3; again++) {
      expect(await stream.next()).toMatchObject({ done: true });
    }
  });

  test("test_streaming_generator::test_generator_basic: a kill in the middle gives the items, the actor's error, the end", async () => {
    const seen = await settled(Stream.remote().exitAt.remote(3));
    expect(seen.slice(0, -1)).toEqual([0, 1, 2]);
    expect(seen.at(-1)).toBeInstanceOf(ray.ActorDiedError);
  });

  test("test_actor_retry_2::test_generator_method_retry_exact_times: a retry goes on without repeating an item", async () => {
    const runs = Counter.options(beside(isolation)).remote();
    const actor = Stream.options({ maxRestarts: 1, maxTaskRetries: 1 }).remote();
    expect(await settled(actor.exitOnce.remote(runs))).toEqual([0, 1, 2, 3, 4, 5]);
    expect(await ray.get(runs.read.remote())).toBe(2);
  });

  test("test_streaming_generator_3::test_generator_wait: wait takes streams among refs, with a time limit", async () => {
    const signals = [Signal.remote(), Signal.remote()];
    const actor = Stream.remote();
    const stream = actor.afterSignals.remote(signals);
    const slow = same.remote("value");
    await ray.get(slow);
    const none = await ray.wait([stream], { timeoutMs: 20 });
    expect(none).toEqual({ ready: [], pending: [stream] });
    const mixed = await ray.wait([stream, slow], { numReturns: 2, timeoutMs: 20 });
    expect(mixed).toEqual({ ready: [slow], pending: [stream] });
    for (const signal of signals) {
      signal.send.remote();
      expect(await ray.wait([stream])).toEqual({ ready: [stream], pending: [] });
      await stream.next();
    }
    // The end counts as ready.
    expect(await ray.wait([stream])).toEqual({ ready: [stream], pending: [] });
    expect(await stream.next()).toMatchObject({ done: true });
  });

  test("test_streaming_generator_backpressure: with 1 the producer is never more than one item ahead", async () => {
    const actor = Stream.remote();
    const stream = actor.counted.options({ generatorBackpressureNumObjects: 1 }).remote(5);
    for (let taken = 0; taken < 5; taken++) {
      await ray.wait([stream]);
      expect(await ray.get(actor.made.remote())).toBe(taken + 1);
      await stream.next();
    }
    expect(await ray.get(stream.completed())).toBe(5);
  });

  test("test_streaming_generator_backpressure: leaving a detached stream lets the producer go on", async () => {
    const actor = Stream.remote();
    const stream = actor.counted
      .options({ generatorBackpressureNumObjects: 1, detached: true })
      .remote(50);
    for await (const _ of stream) break;
    expect(await ray.get(stream.completed())).toBe(50);
    expect(await ray.get(actor.made.remote())).toBe(50);
  });

  test("test_streaming_generator_backpressure: the death of the consumer does not hold up the producer's actor", async () => {
    const actor = Stream.remote();
    const reader = StreamReader.remote();
    expect(await ray.get(reader.readOne.remote(actor))).toBe(0);
    await ray.kill(reader);
    expect(await settled(actor.five.remote())).toEqual([0, 1, 2, 3, 4]);
  });

  test("test_streaming_generator_2::test_async_actor_concurrent: streams of an async actor go on side by side", async () => {
    const actor = Stream.remote();
    const lanes = [0, 1, 2].map(() => [Signal.remote(), Signal.remote()]);
    const streams = lanes.map((signals) => actor.afterSignals.remote(signals));
    // The last one first: none waits for another.
    for (const lane of [2, 1, 0]) {
      for (const signal of lanes[lane] ?? []) {
        signal.send.remote();
        await streams[lane]?.next();
      }
    }
    for (const stream of streams) expect(await ray.get(stream.completed())).toBe(2);
  });

  describe("test_generators::test_generator_returns: numReturns of a generator", () => {
    const three = { numReturns: 3 } as const;
    const outcomes = (refs: unknown): Promise<unknown[]> =>
      Promise.all(
        (refs as ray.ObjectRef[]).map((ref) => ray.get(ref).catch((error: unknown) => error)),
      );
    const tooFew = expect.objectContaining({
      message: expect.stringContaining("must be a list of 3 values, as its numReturns says"),
    });

    test.each(["atOnce", "later"] as const)("of an actor that gives its items %s", async (kind) => {
      const actor = Giver.remote();
      const given = (count: number, then: Then): Promise<unknown[]> =>
        outcomes(actor[kind].options(three).remote(count, then));
      expect(await given(3, "ends")).toEqual([0, 1, 2]);
      expect(await given(2, "ends")).toEqual([0, 1, tooFew]);
      expect(await given(0, "ends")).toEqual([tooFew, tooFew, tooFew]);
      const failed = expect.any(UserError);
      expect(await given(1, "fails")).toEqual([0, failed, failed]);
      expect(await given(0, "fails")).toEqual([failed, failed, failed]);
      const cannotTravel = expect.any(ray.NotEncodableError);
      expect(await given(2, "gives a function")).toEqual([0, 1, cannotTravel]);
      expect(await ray.get(actor.seen.remote())).toEqual({ ended: 6, warnings: [] });

      expect(await given(4, "ends")).toEqual([0, 1, 2]);
      expect(await given(0, "goes on")).toEqual([0, 1, 2]);
      const surplus = expect.stringContaining("gives more than 3 values");
      expect(await ray.get(actor.seen.remote())).toEqual({
        ended: 8,
        warnings: [surplus, surplus],
      });
      expect(await given(3, "fails")).toEqual([0, 1, 2]);
      const { warnings } = await ray.get(actor.seen.remote());
      expect(warnings).toEqual([expect.stringContaining("threw after its 3 values")]);
    });

    test("of a task", async () => {
      for (const task of [givesAtOnce, givesLater]) {
        const given = async (count: number, then: Then): Promise<unknown[]> =>
          outcomes(task.options(three).remote(count, then));
        expect(await given(2, "ends")).toEqual([0, 1, tooFew]);
        expect(await given(0, "goes on")).toEqual([0, 1, 2]);
        const failed = expect.any(UserError);
        expect(await given(1, "fails")).toEqual([0, failed, failed]);
      }
    });

    test("that is tried again: all values are of one run", async () => {
      const actor = Giver.options({ maxTaskRetries: 1, retryExceptions: true }).remote();
      expect(await outcomes(actor.again.options({ numReturns: 2 }).remote())).toEqual([2, 2]);
    });
  });

  test("test_streaming_generator_4::test_caller_death: when the caller dies in the middle, the actor still answers others", async () => {
    const actor = Stream.remote();
    const readers = [StreamReader.remote(), StreamReader.remote()];
    await ray.get(readers.map((reader) => reader.readOne.remote(actor)));
    for (const reader of readers) await ray.kill(reader);
    expect(await ray.get(actor.made.remote())).toBeGreaterThan(0);
    expect(await settled(actor.five.remote())).toEqual([0, 1, 2, 3, 4]);
  });
});
