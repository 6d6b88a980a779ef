/** One limiter for many holders: shared limits, settings that contradict, holders that die, and its own restart. */

import * as ray from "@rayling/core";
import { rewardLimiterOf } from "@rayling/reward-loop";
import type { RewardLimiter, RewardLimiterSettings } from "@rayling/reward-loop";
import { afterAll, expect, test, vi } from "vitest";
import { LimiterClient } from "../../src/limits/limiter-client.ts";

vi.setConfig({ testTimeout: 120_000 });
afterAll(() => ray.shutdown());

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
  const other = { concurrency: 2 };
  expect(rewardLimiterOf(endpoint, other)).toBeDefined();
  await expect(new LimiterClient(limiter, "two", other).ready()).rejects.toMatchObject({
    name: "RewardLimiterConflictError",
    endpoint,
  });
  await expect(new LimiterClient(limiter, "two", other).acquire({})).rejects.toThrow(
    "other limits",
  );
  await ray.get(limiter.forget.remote(""));
  await new LimiterClient(limiter, "two", other).ready();
  expect((await ray.get(limiter.state.remote())).limit).toBe(2);
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
  expect((await ray.get(limiter.state.remote())).waiting).toBe(0);
  held.release({ outcome: "ok" });
  await expect(holder.acquire({}, given.signal)).rejects.toThrow("no more");
  (await holder.acquire({})).release({ outcome: "ok" });
  await expect.poll(() => inFlight(limiter)).toBe(0);
});

test("what a holder had under way is free when it is gone", async () => {
  const { limiter, client } = limited({ concurrency: 1 });
  await client("job/worker 1/0").acquire({});
  const waiting = expect(client("job/worker 1/1").acquire({})).rejects.toThrow("holder is gone");
  const next = client("job/worker 2/0").acquire({});
  await expect.poll(async () => (await ray.get(limiter.state.remote())).waiting).toBe(2);
  await ray.get(limiter.forget.remote("job/worker 1/"));
  await waiting;
  (await next).release({ outcome: "ok" });
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

test("a lease that nobody gives back runs out", async () => {
  const { client } = limited({ concurrency: 1, leaseMs: 50 });
  const holder = client("one");
  await holder.acquire({});
  // The next one comes when it has, longer than the limiter answers "not yet".
  expect((await holder.acquire({})).waitedMs).toBeGreaterThan(50);
});
