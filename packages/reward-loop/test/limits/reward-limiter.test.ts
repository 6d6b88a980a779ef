/** One limiter for many holders: shared limits, settings that contradict, holders that die, and its own restart. */

import { randomUUID } from "node:crypto";
import { createServer, type IncomingMessage, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import { text } from "node:stream/consumers";
import * as ray from "@rayling/core";
import { RewardLimiter, RewardLoopManager, rewardLimiterOf } from "@rayling/reward-loop";
import type { LimiterState, RewardLimiterSettings } from "@rayling/reward-loop";
import { afterAll, beforeAll, describe, expect, onTestFinished, test, vi } from "vitest";
import { LimiterClient, OVERDUE_MS } from "../../src/limits/limiter-client.ts";
import { LimiterMakerActor } from "../fixtures/limiter-maker.ts";
import { RelayActor } from "../fixtures/relay.ts";
import { fixture, sampleOf } from "../loop.ts";
import { VirtualClock } from "../virtual-clock.ts";

vi.setConfig({ testTimeout: 120_000 });
beforeAll(() => ray.init({ isolation: "shared", prewarm: 0 }));
afterAll(() => ray.shutdown());

const closed = { name: "RewardLoopClosedError" };
let endpoints = 0;

function limited(settings: RewardLimiterSettings): {
  readonly endpoint: string;
  readonly limiter: ray.ActorHandle<RewardLimiter>;
  readonly client: (name: string) => LimiterClient;
} {
  const endpoint = `endpoint ${endpoints++}`;
  const limiter = rewardLimiterOf(endpoint, settings);
  return { endpoint, limiter, client: (name) => new LimiterClient(limiter, name, settings) };
}

/** The limiter as a client sees it, whose calls go another way. */
const by = (
  call: (method: keyof RewardLimiter, args: readonly unknown[]) => unknown,
): ray.ActorHandle<RewardLimiter> => {
  // Of no handle: its methods cannot be others.
  return new Proxy({} as ray.ActorHandle<RewardLimiter>, {
    get: (_, method) => ({
      remote: (...args: readonly unknown[]) => call(method as keyof RewardLimiter, args),
    }),
  });
};

/** The limiter, where something else happens just before it is told of a holder's calls. */
const telling = (
  limiter: ray.ActorHandle<RewardLimiter>,
  before: (
    asked: Parameters<RewardLimiter["update"]>[2],
    over: Parameters<RewardLimiter["update"]>[3],
  ) => void,
): ray.ActorHandle<RewardLimiter> =>
  by((method, args) => {
    const [, , asked, over] = args as Parameters<RewardLimiter["update"]>;
    if (method === "update") before(asked, over);
    const called = limiter[method] as { readonly remote: (...all: unknown[]) => unknown };
    return called.remote(...args);
  });

const inFlight = async (limiter: ray.ActorHandle<RewardLimiter>): Promise<number> =>
  (await ray.get(limiter.state.remote())).inFlight;

test("holders share its limits, and who waited longest is next", async () => {
  const { limiter, client } = limited({ concurrency: 2 });
  const [one, other] = [client("one"), client("other")];
  const first = await one.acquire({});
  const second = await other.acquire({});
  const order: string[] = [];
  const third = one.acquire({}).then((lease) => {
    order.push("third");
    return lease;
  });
  await expect.poll(async () => (await ray.get(limiter.state.remote())).waiting).toBe(1);
  const fourth = other.acquire({}).then((lease) => {
    order.push("fourth");
    return lease;
  });
  await expect.poll(async () => (await ray.get(limiter.state.remote())).waiting).toBe(2);
  first.release({ outcome: "ok" });
  first.release({ outcome: "ok" });
  (await third).release({ outcome: "failed" });
  second.release({ outcome: "ok" });
  const last = await fourth;
  expect(order).toEqual(["third", "fourth"]);
  expect(last.waitedMs).toBeGreaterThan(0);
  expect(await inFlight(limiter)).toBe(1);
});

test("settings that contradict others' are refused, and taken when nobody is left", async () => {
  const { endpoint, limiter, client } = limited({ concurrency: 1 });
  await client("one").ready();
  // The same in other words.
  await new LimiterClient(limiter, "same", { concurrency: 1, minuteMs: 60_000 }).ready();
  const other = { concurrency: 2 };
  expect(rewardLimiterOf(endpoint, other)).toBeDefined();
  await expect(new LimiterClient(limiter, "two", other).ready()).rejects.toMatchObject({
    name: "RewardLimiterConflictError",
    message: expect.stringContaining("another reward of this loop") as string,
    endpoint,
  });
  await expect(new LimiterClient(limiter, "two", other).acquire({})).rejects.toThrow(
    "other limits",
  );
  await ray.get(limiter.forget.remote(""));
  await new LimiterClient(limiter, "two", other).ready();
  expect((await ray.get(limiter.state.remote())).limit).toBe(2);
});

test("under other settings the last minute counts as well", async () => {
  const clock = new VirtualClock();
  const before = { requestsPerMinute: 60, tokensPerMinute: 1000 };
  const limiter = new RewardLimiter("an endpoint", before, clock);
  await limiter.open("one", before);
  expect(limiter.update("one", 0, [[1, { tokens: 300 }]])).toEqual([[1, 0]]);
  limiter.update("one", 0, [], [[1, { outcome: "ok", tokens: 200 }]]);
  limiter.forget("one");
  await clock.advanceTo(30_000);
  await limiter.open("two", { requestsPerMinute: 90, tokensPerMinute: 500 });
  expect(limiter.state()).toMatchObject({
    requests: { limit: 90, used: 1 },
    tokens: { limit: 500, used: 200 },
  });
  await clock.advanceTo(62_000);
  expect(limiter.state()).toMatchObject({ requests: { used: 0 }, tokens: { used: 0 } });
});

test("under other settings the endpoint has its pause as well", async () => {
  const clock = new VirtualClock();
  const limiter = new RewardLimiter("an endpoint", { requestsPerMinute: 60 }, clock);
  await limiter.open("one", { requestsPerMinute: 60 });
  expect(limiter.update("one", 0, [[1, {}]])).toEqual([[1, 0]]);
  limiter.update("one", 0, [], [[1, { outcome: "refused", retryAfterMs: 60_000 }]]);
  limiter.forget("one");
  const others = { requestsPerMinute: 90 };
  await limiter.open("two", others, { asked: [[1, {}]] });
  await clock.advanceTo(59_999);
  expect(limiter.state()).toMatchObject({ waiting: 1, inFlight: 0 });
  await clock.advanceTo(60_000);
  expect(await limiter.nextGrants("two", 0)).toEqual([[1, 60_000]]);
});

test("who gives up leaves its place, or gives back what it got", async () => {
  const { limiter, client } = limited({ concurrency: 1 });
  const holder = client("one");
  const held = await holder.acquire({});
  const given = new AbortController();
  const waiting = expect(holder.acquire({}, given.signal)).rejects.toThrow("no more");
  await expect.poll(async () => (await ray.get(limiter.state.remote())).waiting).toBe(1);
  given.abort(new Error("no more"));
  await waiting;
  await expect.poll(async () => (await ray.get(limiter.state.remote())).waiting).toBe(0);
  held.release({ outcome: "ok" });
  await expect(holder.acquire({}, given.signal)).rejects.toThrow("no more");
  (await holder.acquire({})).release({ outcome: "ok" });
  await expect.poll(() => inFlight(limiter)).toBe(0);
});

test("who gives up before it is known does not ask any more", async () => {
  const { limiter, client } = limited({ concurrency: 1 });
  const holder = client("one");
  const given = new AbortController();
  const asking = expect(holder.acquire({}, given.signal)).rejects.toThrow("no more");
  given.abort(new Error("no more"));
  await asking;
  expect(await ray.get(limiter.state.remote())).toMatchObject({ inFlight: 0, granted: 0 });
});

test("what is granted to a call that was given up meanwhile is given back", async () => {
  const { limiter } = limited({ concurrency: 1 });
  const given = new AbortController();
  const late = telling(limiter, () => given.abort(new Error("no more")));
  const holder = new LimiterClient(late, "one", { concurrency: 1 });
  await holder.ready();
  await expect(holder.acquire({}, given.signal)).rejects.toThrow("no more");
  await expect
    .poll(() => ray.get(limiter.state.remote()))
    .toMatchObject({ inFlight: 0, granted: 1, waiting: 0 });
});

test("what a holder had under way is free when it is gone", async () => {
  const { limiter, client } = limited({ concurrency: 1 });
  const ended = [client("job/worker 1/0"), client("job/worker 1/1")];
  await ended[0]?.acquire({});
  const waiting = expect(ended[1]?.acquire({})).rejects.toMatchObject(closed);
  const next = client("job/worker 2/0").acquire({});
  await expect.poll(async () => (await ray.get(limiter.state.remote())).waiting).toBe(2);
  for (const one of ended) one.close();
  await waiting;
  await expect(ended[0]?.acquire({})).rejects.toMatchObject(closed);
  (await next).release({ outcome: "ok" });
});

test("holders of one prefix are dropped together, and who goes on says again what it has", async () => {
  const { limiter, client } = limited({ concurrency: 1 });
  const held = await client("job/worker 1/0").acquire({});
  const granted = [client("job/worker 1/1").acquire({}), client("job/worker 2/0").acquire({})];
  await expect.poll(async () => (await ray.get(limiter.state.remote())).waiting).toBe(2);
  const [, left] = await ray.get([limiter.forget.remote("job/worker 1/"), limiter.state.remote()]);
  expect(left).toMatchObject({ waiting: 1, holders: 1 });
  held.release({ outcome: "ok" });
  for (const next of granted) void next.then((lease) => lease.release({ outcome: "ok" }));
  await Promise.all(granted);
  await expect
    .poll(() => ray.get(limiter.state.remote()))
    .toMatchObject({ inFlight: 0, waiting: 0, holders: 3 });
});

test("all that a holder asks and gives back in one turn goes in one call", async () => {
  const { limiter } = limited({ concurrency: 600 });
  const calls: (readonly [asked: number, over: number])[] = [];
  const counting = telling(limiter, (asked, over = []) => calls.push([asked.length, over.length]));
  const holder = new LimiterClient(counting, "one", { concurrency: 600 });
  await holder.ready();
  const leases = await Promise.all(Array.from({ length: 600 }, () => holder.acquire({})));
  expect(calls).toEqual([[600, 0]]);
  for (const lease of leases) {
    // The call has its outcome, and is over in the same turn.
    lease.answered({ outcome: "ok" });
    lease.release({ outcome: "ok" });
  }
  await expect.poll(() => inFlight(limiter)).toBe(0);
  expect(calls).toEqual([
    [600, 0],
    [0, 600],
  ]);
});

test("a grant whose answer is lost is told again", async () => {
  const limiter = new RewardLimiter("an endpoint", { concurrency: 2 }, new VirtualClock());
  await limiter.open("one", { concurrency: 2 });
  expect(
    limiter.update("one", 0, [
      [1, {}],
      [2, {}],
      [3, {}],
    ]),
  ).toEqual([
    [1, 0],
    [2, 0],
  ]);
  // It has heard of neither, and gave the second up.
  await limiter.open(
    "one",
    { concurrency: 2 },
    {
      asked: [
        [1, {}],
        [3, {}],
      ],
    },
  );
  expect(await limiter.nextGrants("one", 0)).toEqual([
    [1, 0],
    [3, 0],
  ]);
  expect(limiter.state()).toMatchObject({ inFlight: 2, granted: 3, waiting: 0 });
  // It has heard of the first alone, and the call is over.
  await limiter.open("one", { concurrency: 2 }, { held: [[1, 0]], asked: [] });
  expect(limiter.state()).toMatchObject({ inFlight: 1, waiting: 0 });
});

test("what a holder asks for anew is not told to who asked before", async () => {
  const limiter = new RewardLimiter("an endpoint", { concurrency: 2 }, new VirtualClock());
  await limiter.open("one", { concurrency: 2 });
  const lost = limiter.nextGrants("one", 0);
  limiter.update("one", 0, [[1, {}]]);
  await limiter.open("one", { concurrency: 2 }, { asked: [[1, {}]] });
  expect(await limiter.nextGrants("one", 0)).toEqual([[1, 0]]);
  expect(await lost).toEqual([]);
});

test("what a holder said before it registered anew is not heard", async () => {
  const settings = { concurrency: 2 };
  const limiter = new RewardLimiter("an endpoint", settings, new VirtualClock());
  await limiter.open("one", settings, { epoch: 1 });
  await limiter.open("one", settings, { epoch: 2, asked: [[1, {}]] });
  expect(limiter.update("one", 1, [[2, {}]], [[1, { outcome: "ok" }]])).toEqual([]);
  expect(await limiter.nextGrants("one", 1)).toEqual([]);
  await limiter.open("one", settings, { epoch: 1 });
  expect(await limiter.nextGrants("one", 2)).toEqual([[1, 0]]);
  expect(limiter.state()).toMatchObject({ inFlight: 1, waiting: 0 });
});

test("connections that break keep nobody waiting, and lose no lease", async () => {
  const settings = { concurrency: 5 };
  const { limiter } = limited(settings);
  const relays = Array.from({ length: 3 }, () =>
    RelayActor.options({ maxRestarts: -1, maxConcurrency: 100_000, numCpus: 0 }).remote(limiter),
  );
  const clients = relays.map((relay, index) => {
    const way = by((method, args) => relay.call.remote(method, args));
    return new LimiterClient(way, `client ${index}`, settings);
  });
  let underWay = 0;
  let most = 0;
  const progress = { left: 600 };
  let ended = Promise.withResolvers<void>();
  const run = async (client: LimiterClient): Promise<void> => {
    while (progress.left > 0) {
      progress.left -= 1;
      const lease = await client.acquire({});
      underWay += 1;
      most = Math.max(most, underWay);
      await new Promise((resolve) => void setImmediate(resolve));
      underWay -= 1;
      lease.release({ outcome: "ok" });
      ended.resolve();
    }
  };
  const runs = Promise.all(
    clients.flatMap((client) => Array.from({ length: 10 }, () => run(client))),
  );
  // Whenever something has come through, the next connection breaks.
  for (let kills = 0; progress.left > 0; kills++) {
    const relay = relays[kills % relays.length];
    if (relay !== undefined) await ray.kill(relay, { noRestart: false });
    ended = Promise.withResolvers();
    await Promise.race([ended.promise, runs]);
  }
  await runs;
  expect(most).toBeLessThanOrEqual(5);
  await expect
    .poll(() => ray.get(limiter.state.remote()))
    .toMatchObject({ inFlight: 0, waiting: 0 });
});

describe("what a report said is not lost", () => {
  const settings = { concurrency: 5 };
  const refused = { outcome: "refused", tokens: 0 } as const;

  test("with its connection", async () => {
    const { limiter } = limited(settings);
    const relay = RelayActor.options({ maxRestarts: -1, maxConcurrency: 100 }).remote(limiter);
    let isDown = false;
    const way = by((method, args) => {
      if (!isDown) return relay.call.remote(method, args);
      isDown = false;
      const ref = relay.lost.remote();
      void ray.kill(relay, { noRestart: false });
      return ref;
    });
    const client = new LimiterClient(way, "one", settings);
    const [lease, goingOn] = [await client.acquire({}), await client.acquire({})];
    const state = (): Promise<LimiterState> => ray.get(limiter.state.remote());
    isDown = true;
    lease.release(refused);
    await expect.poll(state).toMatchObject({ inFlight: 1, refused: 1 });
    isDown = true;
    goingOn.answered(refused);
    goingOn.answered(refused);
    await expect.poll(state).toMatchObject({ inFlight: 1, refused: 2 });
    goingOn.release(refused);
    await expect.poll(state).toMatchObject({ inFlight: 0, refused: 2 });
  });

  test("on a limiter that does not know its holder any more", async () => {
    const { limiter } = limited(settings);
    let isForgotten = false;
    const way = telling(limiter, () => {
      if (isForgotten) void limiter.leave.remote("one");
      isForgotten = false;
    });
    const client = new LimiterClient(way, "one", settings);
    const state = (): Promise<LimiterState> => ray.get(limiter.state.remote());
    const goingOn = await client.acquire({});
    isForgotten = true;
    goingOn.answered(refused);
    await expect.poll(state).toMatchObject({ inFlight: 1, refused: 1 });
    goingOn.release(refused);
    await expect.poll(state).toMatchObject({ inFlight: 0, refused: 1 });
  });
});

test("who gives up many at once makes room for none of them", async () => {
  const settings = { concurrency: 1, requestsPerMinute: 100_000 };
  const limiter = new RewardLimiter("an endpoint", settings, new VirtualClock());
  await limiter.open("one", settings);
  const ids = Array.from({ length: 50 }, (_, index) => index);
  limiter.update(
    "one",
    0,
    ids.map((id) => [id, {}]),
  );
  limiter.update(
    "one",
    0,
    [],
    ids.map((id) => [id, { outcome: "unknown" }]),
  );
  expect(limiter.state()).toMatchObject({ granted: 1, inFlight: 0, waiting: 0 });
  limiter.update(
    "one",
    0,
    ids.map((id) => [id, {}]),
  );
  await limiter.open("one", settings);
  expect(limiter.state()).toMatchObject({ granted: 2, inFlight: 0, waiting: 0 });
});

test("a call that cannot be asked for fails alone", async () => {
  const { limiter, client } = limited({ concurrency: 5 });
  const one = client("one");
  await one.ready();
  const bad = one.acquire({ lane: (() => "no text") as unknown as string });
  await expect(bad).rejects.toThrow(ray.NotEncodableError);
  (await one.acquire({})).release({ outcome: "ok" });
  await expect.poll(() => inFlight(limiter)).toBe(0);
});

test("a question that is asked again leaves nothing to the one before", async () => {
  const limiter = new RewardLimiter("an endpoint", { concurrency: 1 }, new VirtualClock());
  await limiter.open("one", { concurrency: 1 });
  const before = limiter.nextGrants("one", 0);
  await limiter.open("one", { concurrency: 1 });
  const next = limiter.nextGrants("one", 0);
  expect(await before).toEqual([]);
  await limiter.open("other", { concurrency: 1 });
  expect(limiter.update("other", 0, [[1, {}]])).toEqual([[1, 0]]);
  expect(limiter.update("one", 0, [[7, {}]])).toEqual([]);
  limiter.update("other", 0, [], [[1, { outcome: "ok" }]]);
  expect(await next).toMatchObject([[7, expect.any(Number)]]);
});

test("a limiter that is restarted is told what is under way before it lets anybody through", async () => {
  const { limiter, client } = limited({ concurrency: 2 });
  const [one, other] = [client("one"), client("other")];
  const held = [await one.acquire({}), await one.acquire({})];
  const waiting = other.acquire({});
  await ray.kill(limiter, { noRestart: false });
  await expect.poll(() => inFlight(limiter), { timeout: 60_000 }).toBe(2);
  let isThrough = false;
  void waiting.then(() => (isThrough = true));
  // As long as it would have let one through by now.
  await expect
    .poll(async () => (await ray.get(limiter.state.remote())).waiting, { timeout: 60_000 })
    .toBe(1);
  expect(isThrough).toBe(false);
  held[0]?.release({ outcome: "ok" });
  (await waiting).release({ outcome: "ok" });
  held[1]?.release({ outcome: "ok" });
  await expect.poll(() => inFlight(limiter)).toBe(0);
});

test("a limiter that is restarted is told what was used in the last minute", async () => {
  // Of an endpoint whose minutes are long: all of the test is of one.
  const rates = { requestsPerMinute: 60_000, tokensPerMinute: 600_000, minuteMs: 36_000_000 };
  const { limiter, client } = limited(rates);
  const [one, other] = [client("one"), client("other")];
  for (const holder of [one, one, other]) {
    const lease = await holder.acquire({ tokens: 10 });
    lease.release({ outcome: "ok", tokens: 7 });
  }
  await one.acquire({ tokens: 10 });
  const used = async (): Promise<unknown> => {
    const { requests, tokens } = await ray.get(limiter.state.remote());
    return [requests?.used, tokens?.used];
  };
  await expect.poll(used).toEqual([4, 31]);
  await ray.kill(limiter, { noRestart: false });
  await expect.poll(used, { timeout: 60_000 }).toEqual([4, 31]);
  // Said twice, it counts once.
  await ray.get(limiter.forget.remote("o"));
  await expect
    .poll(async () => (await ray.get(limiter.state.remote())).holders, { timeout: 60_000 })
    .toBe(2);
  expect(((await used()) as number[])[0]).toBeLessThanOrEqual(5);
});

test("a limiter that is restarted is told what the endpoint asked for, and of no call twice", async () => {
  const settings = { concurrency: 5 };
  const { limiter, client } = limited(settings);
  const one = client("one");
  const held = await one.acquire({});
  held.answered({ outcome: "refused", retryAfterMs: 3_600_000 });
  const state = (): Promise<LimiterState> => ray.get(limiter.state.remote());
  await expect.poll(state).toMatchObject({ refused: 1 });
  const waiting = expect(one.acquire({})).rejects.toMatchObject(closed);
  await ray.kill(limiter, { noRestart: false });
  await expect.poll(state, { timeout: 60_000 }).toMatchObject({ inFlight: 1, waiting: 1 });
  // Another one that is restarted later, and lets somebody through, has taken as long by then.
  const other = limited(settings);
  const free = other.client("one");
  await free.ready();
  await ray.kill(other.limiter, { noRestart: false });
  await free.acquire({});
  expect(await state()).toMatchObject({ inFlight: 1, waiting: 1, refused: 0 });
  held.release({ outcome: "refused" });
  await expect.poll(state).toMatchObject({ inFlight: 0, waiting: 1, refused: 0 });
  one.close();
  await waiting;
});

test("what was given up and does not end gives its place back in the end", async () => {
  const settings = { concurrency: 2 };
  const { endpoint, limiter } = limited(settings);
  const clock = new VirtualClock();
  const holder = new LimiterClient(limiter, endpoint, settings, clock);
  const leases = [await holder.acquire({}), await holder.acquire({})];
  leases[0]?.givenUp();
  leases[0]?.givenUp();
  const next = holder.acquire({});
  await expect.poll(async () => (await ray.get(limiter.state.remote())).waiting).toBe(1);
  await clock.advanceTo(OVERDUE_MS - 1);
  expect(await ray.get(limiter.state.remote())).toMatchObject({ inFlight: 2, waiting: 1 });
  await clock.advanceTo(OVERDUE_MS);
  (await next).release({ outcome: "ok" });
  leases[0]?.release({ outcome: "ok" });
  await expect.poll(() => inFlight(limiter)).toBe(1);
  // It was not given up, however long it takes.
  await clock.advanceTo(100 * OVERDUE_MS);
  expect(await inFlight(limiter)).toBe(1);
});

test("a call holds its place for hours while its holder is heard of, and no longer", async () => {
  const clock = new VirtualClock();
  const limiter = new RewardLimiter("an endpoint", { concurrency: 1 }, clock);
  await limiter.open("one", { concurrency: 1 });
  expect(limiter.update("one", 0, [[1, {}]])).toEqual([[1, 0]]);
  const hours = 2 * 3_600_000;
  for (let ms = 0; ms <= hours; ms += 5000) {
    await clock.advanceTo(ms);
    void limiter.nextGrants("one", 0);
  }
  expect(limiter.state()).toMatchObject({ inFlight: 1, holders: 1 });
  await clock.advanceTo(hours + 100_000);
  await expect.poll(() => limiter.state()).toMatchObject({ inFlight: 0, holders: 0 });
  expect(await limiter.nextGrants("one", 0)).toBeUndefined();
  expect(limiter.update("one", 0, [[2, {}]])).toBeUndefined();
});

test("a holder that was thought to be gone says again what it holds", async () => {
  const { limiter, client } = limited({ concurrency: 1 });
  const held = await client("one").acquire({});
  // In one turn: it says so again at its next sign of life.
  const [, gone] = await ray.get([limiter.forget.remote("one"), limiter.state.remote()]);
  expect(gone.holders).toBe(0);
  await expect
    .poll(() => ray.get(limiter.state.remote()))
    .toMatchObject({ holders: 1, inFlight: 1 });
  held.release({ outcome: "ok" });
  await expect.poll(() => inFlight(limiter)).toBe(0);
});

test("a limiter outlives who made it, with what it knows", async () => {
  const [endpoint, settings] = ["of two", { requestsPerMinute: 1000 }];
  const maker = LimiterMakerActor.remote();
  await ray.get(maker.make.remote(endpoint, settings));
  const limiter = rewardLimiterOf(endpoint, settings);
  const holder = new LimiterClient(limiter, "one", settings);
  (await holder.acquire({})).release({ outcome: "ok" });
  await ray.kill(maker);
  await expect(ray.get(maker.make.remote(endpoint, settings))).rejects.toThrow(ray.ActorDiedError);
  (await holder.acquire({})).release({ outcome: "ok" });
  const later = rewardLimiterOf(endpoint, settings);
  expect(await ray.get(later.state.remote())).toMatchObject({ granted: 2, requests: { used: 2 } });
});

/** The address of a server that lasts as long as its test. */
async function serve(
  answer: (request: IncomingMessage, response: ServerResponse) => void,
): Promise<string> {
  const server = createServer(answer);
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  onTestFinished(() => {
    server.closeAllConnections();
    server.close();
  });
  return `http://127.0.0.1:${(server.address() as AddressInfo).port}/v1`;
}

test("a probe that is never answered keeps no breaker half open, and its place", async () => {
  let held: ServerResponse | undefined;
  const judgeUrl = await serve(async (request, response) => {
    const asked = await text(request);
    if (asked === "held") held = response;
    else response.writeHead(asked === "500" ? 500 : 200).end("1");
  });
  await using loop = await RewardLoopManager.create({
    workers: 1,
    executors: 1,
    reward: { path: fixture("asks.ts"), name: "heedless", rewardKwargs: { judgeUrl } },
    limits: { endpoint: "held", breaker: { window: 2, openMs: 1, probes: 1 } },
    timeoutMs: 500,
    retry: { attempts: 1 },
  });
  const codeOf = async (asked: string): Promise<string | undefined> => {
    const outcome = await loop.computeScore(sampleOf(asked));
    return outcome.valid ? undefined : outcome.error.code;
  };
  const state = async (): Promise<LimiterState | undefined> => (await loop.endpoints())[0];
  expect(await codeOf("500")).toBe("SCORE_THREW");
  expect(await codeOf("held")).toBe("SCORE_TIMEOUT");
  expect(await codeOf("answered")).toBeUndefined();
  await expect.poll(state).toMatchObject({ breaker: "closed", inFlight: 1, granted: 3 });
  // Its answer comes late: nothing is counted once more.
  held?.writeHead(500).end();
  await expect.poll(state).toMatchObject({ breaker: "closed", inFlight: 0 });
});

test("each request that the client of a function sends to a server counts", async () => {
  let asked = 0;
  const judgeUrl = await serve((_, response) => {
    asked += 1;
    const choices = [{ message: { content: "1" }, finish_reason: "stop" }];
    response.writeHead(200, { "content-type": "application/json" });
    response.end(JSON.stringify({ choices }));
  });
  const endpoint = randomUUID();
  const limits = { requestsPerMinute: 6_000_000, minuteMs: 36_000_000, concurrency: 1 };
  await using loop = await RewardLoopManager.create({
    workers: 1,
    executors: 1,
    reward: { path: fixture("asks.ts"), name: "threeTimes", rewardKwargs: { judgeUrl } },
    // Its minutes are long: all of the test is of one.
    limits: { ...limits, endpoint },
  });
  const texts = ["a", "b", "c", "d", "e"];
  const outcomes = await Promise.all(texts.map((one) => loop.computeScore(sampleOf(one))));
  expect(outcomes.filter(({ valid }) => !valid)).toEqual([]);
  expect(asked).toBe(15);
  const [state] = await loop.endpoints();
  expect(state).toMatchObject({ granted: 5, requests: { used: 15 } });
  // A limiter that is restarted is told of all of them.
  await ray.kill(rewardLimiterOf(endpoint, limits), { noRestart: false });
  await expect
    .poll(() => loop.endpoints(), { timeout: 60_000 })
    .toMatchObject([{ granted: 0, requests: { used: 15 } }]);
});

test("a further request that is given up takes nothing of the minute", async () => {
  const clock = new VirtualClock();
  const settings = { requestsPerMinute: 60 };
  const limiter = new RewardLimiter("an endpoint", settings, clock);
  await limiter.open("one", settings);
  expect(limiter.update("one", 0, [[1, {}]])).toEqual([[1, 0]]);
  const gone = new AbortController();
  const given = limiter.further(gone.signal);
  const next = limiter.further();
  gone.abort();
  await expect(given).rejects.toMatchObject({ name: "AbortError" });
  await expect(limiter.further(gone.signal)).rejects.toMatchObject({ name: "AbortError" });
  await clock.advanceTo(10_000);
  await next;
  expect(limiter.state().requests).toEqual({ limit: 60, used: 2 });
});

test("a pause that a client was asked for holds at once for all calls", async () => {
  const clock = new VirtualClock();
  const limiter = new RewardLimiter("an endpoint", {}, clock);
  await limiter.open("one", {});
  expect(limiter.update("one", 0, [[1, {}]])).toEqual([[1, 0]]);
  const again = limiter.further(undefined, 3000);
  expect(limiter.update("one", 0, [[2, {}]])).toEqual([]);
  await clock.advanceTo(2999);
  expect(limiter.update("one", 0, [])).toEqual([]);
  await clock.advanceTo(3000);
  await again;
  expect(limiter.update("one", 0, [])).toEqual([[2, 3000]]);
});
