/** Token buckets against verl's traces, lanes, adaptive limits and the limiter, on a clock of their own. */
import { describe, expect, test } from "vitest";
import { goldenFile } from "../../../../test/fixtures/golden.ts";
import { AdaptiveLimit } from "../../src/limits/adaptive-limit.ts";
import type { Ticket } from "../../src/limits/adaptive-limit.ts";
import { Lanes } from "../../src/limits/lanes.ts";
import { Limiter } from "../../src/limits/limiter.ts";
import type {
  Lease,
  LimiterSettings,
  LimitReport,
  LimitRequest,
} from "../../src/limits/limiter.ts";
import { TokenBucket } from "../../src/limits/token-bucket.ts";
import { reportOf } from "../../src/worker/limit-report.ts";
import type { ScoreFailure } from "../../src/outcome.ts";
import { VirtualClock } from "../virtual-clock.ts";
import { seededRandom } from "../../../../test/servers/seeded.ts";

const acquire = (limiter: Limiter, request: LimitRequest = {}): Promise<Lease> =>
  new Promise((resolve) => void limiter.ask(request, resolve));

type TraceCase = {
  readonly note: string;
  readonly rate: number;
  readonly capacity: number | null;
} & (
  | {
      readonly kind: "sequential";
      readonly ops: readonly (readonly ["acquire" | "sleep", number])[];
      readonly grants: readonly { readonly start: number; readonly granted: number }[];
    }
  | {
      readonly kind: "concurrent";
      readonly requests: readonly (readonly [at: number, count: number])[];
      readonly result: { readonly order: readonly { readonly i: number; readonly at: number }[] };
    }
);
const { cases } = goldenFile("token-bucket.json") as { cases: readonly TraceCase[] };

describe("a token bucket grants when verl's does", () => {
  const bucketOf = ({ rate, capacity }: TraceCase): TokenBucket =>
    new TokenBucket({ rate, capacity: capacity ?? rate });

  test.each(cases.filter(({ kind }) => kind === "sequential"))("$note", (trace) => {
    if (trace.kind !== "sequential") return;
    const bucket = bucketOf(trace);
    let nowMs = 0;
    const grants: { start: number; granted: number }[] = [];
    for (const [op, amount] of trace.ops) {
      const start = nowMs / 1000;
      nowMs += op === "sleep" ? 1000 * amount : bucket.reserve(amount, nowMs);
      if (op === "acquire") grants.push({ start, granted: nowMs / 1000 });
    }
    const wanted = trace.grants.map(({ start, granted }) => ({ start, granted }));
    for (const [index, { start, granted }] of grants.entries()) {
      expect(start).toBeCloseTo(wanted[index]?.start ?? Number.NaN, 9);
      expect(granted).toBeCloseTo(wanted[index]?.granted ?? Number.NaN, 9);
    }
    expect(grants).toHaveLength(wanted.length);
  });

  test.each(cases.filter(({ kind }) => kind === "concurrent"))("$note", (trace) => {
    if (trace.kind !== "concurrent") return;
    const bucket = bucketOf(trace);
    const times = trace.requests.map(([at, count]) => at + bucket.reserve(count, 1000 * at) / 1000);
    // The times are verl's; who waits gets them in order, which there depends on who wakes first.
    const wanted = trace.result.order.map(({ at }) => at).toSorted((left, right) => left - right);
    for (const [index, time] of times.entries()) {
      expect(time).toBeCloseTo(wanted[index] ?? Number.NaN, 9);
    }
    expect(times).toHaveLength(wanted.length);
  });
});

describe("lanes", () => {
  test("share by their shares, each in order, and save up nothing", () => {
    const lanes = new Lanes<string>({ training: 3, validation: 1 });
    for (let n = 0; n < 8; n++) lanes.push("training", `t${n}`);
    for (let n = 0; n < 3; n++) lanes.push("validation", `v${n}`);
    const first = Array.from({ length: 8 }, () => lanes.shift());
    expect(first.filter((one) => one?.startsWith("v"))).toEqual(["v0", "v1"]);
    expect(first.filter((one) => one?.startsWith("t"))).toEqual([
      "t0",
      "t1",
      "t2",
      "t3",
      "t4",
      "t5",
    ]);
    // It comes late, and is not given what it did not ask for.
    lanes.push("recovery", "r0");
    lanes.push("recovery", "r1");
    const rest = Array.from({ length: 5 }, () => lanes.shift());
    expect(rest.slice(0, 3).filter((one) => one?.startsWith("r"))).toHaveLength(1);
    expect(new Set(rest)).toEqual(new Set(["r0", "r1", "t6", "t7", "v2"]));
    expect(lanes.shift()).toBeUndefined();
  });

  test.each([
    ["training", "validation"],
    ["validation", "training"],
  ])(
    "%s that was served before everybody had left takes turns with %s afterwards",
    (old, young) => {
      const lanes = new Lanes<string>();
      for (let n = 0; n < 100; n++) lanes.push(old, old);
      for (let n = 0; n < 100; n++) lanes.shift();
      for (let n = 0; n < 10; n++) lanes.push(young, young);
      for (let n = 0; n < 10; n++) lanes.push(old, old);
      const first = Array.from({ length: 10 }, () => lanes.shift());
      expect(first.filter((one) => one === old).length).toBeGreaterThanOrEqual(4);
      expect(first.filter((one) => one === young).length).toBeGreaterThanOrEqual(4);
    },
  );

  test("a lane that nobody waited in for long has saved up nothing, and owes nothing", () => {
    const lanes = new Lanes<string>({ b: 4 });
    const serve = (lane: string, count: number): void => {
      for (let n = 0; n < count; n++) lanes.push(lane, lane);
      for (let n = 0; n < count; n++) lanes.shift();
    };
    serve("a", 50);
    serve("b", 8);
    serve("a", 50);
    for (let n = 0; n < 20; n++) for (const lane of ["b", "a"]) lanes.push(lane, lane);
    const first = Array.from({ length: 20 }, () => lanes.shift());
    expect(first.filter((one) => one === "b").length).toBeGreaterThanOrEqual(15);
    expect(first.filter((one) => one === "a").length).toBeGreaterThanOrEqual(3);
  });

  test("who has left is passed over", () => {
    const lanes = new Lanes<number>();
    const places = [1, 2, 3].map((n) => lanes.push("a", n));
    (places[0] as { isGone: boolean }).isGone = true;
    (places[1] as { isGone: boolean }).isGone = true;
    expect(lanes.shift()).toBe(3);
    expect(lanes.peek()).toBeUndefined();
    lanes.push("a", 4);
    expect(lanes.drain()).toEqual([4]);
  });
});

/** A server of that capacity, which refuses at once; answers take as long as the seed says. */
async function useUp(
  limiter: Limiter,
  clock: VirtualClock,
  capacityAt: (ms: number) => number,
  untilMs: number,
  latencyOf: () => number,
): Promise<{ readonly calls: number; readonly refused: number; readonly busyMs: number }> {
  let atServer = 0;
  let calls = 0;
  let refused = 0;
  let busyMs = 0;
  const over = new AbortController();
  const worker = async (): Promise<void> => {
    while (!over.signal.aborted) {
      const lease = await acquire(limiter);
      if (over.signal.aborted) return lease.release({ outcome: "ok" });
      calls += 1;
      if (atServer >= capacityAt(clock.now())) {
        refused += 1;
        await clock.sleep(5);
        lease.release({ outcome: "refused" });
        continue;
      }
      atServer += 1;
      const latency = latencyOf();
      await clock.sleep(latency);
      atServer -= 1;
      busyMs += latency;
      lease.release({ outcome: "ok" });
    }
  };
  const workers = Array.from({ length: 1500 }, worker);
  await clock.advanceTo(untilMs);
  over.abort();
  await clock.advanceTo(untilMs + 100_000);
  await Promise.all(workers);
  return { calls, refused, busyMs };
}

describe("an adaptive limit", () => {
  test.each([1, 2, 3])(
    "finds a capacity of 448 within 20 round trips, with few refused (seed %d)",
    async (seed) => {
      const random = seededRandom(seed);
      const clock = new VirtualClock();
      const limiter = new Limiter({ concurrency: {} }, clock);
      const latency = 1000;
      const jittered = (): number => latency * (0.5 + random());
      await useUp(limiter, clock, () => 448, 20 * latency, jittered);
      expect(limiter.state.limit).toBeGreaterThanOrEqual(0.95 * 448);
      const again = new VirtualClock();
      const { calls, refused } = await useUp(
        new Limiter({ concurrency: {} }, again),
        again,
        () => 448,
        40 * latency,
        jittered,
      );
      expect(refused / calls).toBeLessThan(0.01);
    },
  );

  test("is not fooled by answers that come all at once", () => {
    const limit = new AdaptiveLimit({ initial: 256 });
    const first = Array.from({ length: 256 }, (_, index) => limit.sent(index + 1));
    let inFlight = first.length;
    const sent: Ticket[] = [];
    // All are over; when the next ones are sent the answers of most were not heard yet.
    for (const ticket of first) {
      limit.answered({ ticket, latencyMs: 200, outcome: "ok" }, inFlight--);
      while (inFlight < limit.limit) sent.push(limit.sent(++inFlight));
    }
    expect(sent.length).toBeGreaterThan(448);
    for (const ticket of sent.slice(448)) {
      limit.answered({ ticket, latencyMs: 1, outcome: "refused" }, inFlight--);
    }
    expect(limit.limit).toBe(448);
  });

  test("refuses few when there is less room at once", async () => {
    const clock = new VirtualClock();
    const limiter = new Limiter({ concurrency: {} }, clock);
    const capacityAt = (ms: number): number => (ms < 15_000 ? 448 : 200);
    const { calls, refused } = await useUp(limiter, clock, capacityAt, 40_000, () => 1000);
    expect(limiter.state.limit).toBeGreaterThanOrEqual(0.95 * 200);
    expect(refused / calls).toBeLessThan(0.05);
  });

  test("finds more room step by step", () => {
    const limit = new AdaptiveLimit({ initial: 100 });
    const roundTrip = (): number => {
      const before = limit.limit;
      for (let n = 0; n < before; n++) {
        const ticket = limit.sent(limit.limit);
        limit.answered({ ticket, latencyMs: 1, outcome: "ok" }, limit.limit);
      }
      return limit.limit - before;
    };
    limit.answered({ ticket: limit.sent(101), latencyMs: 1, outcome: "refused" }, 101);
    const steps = Array.from({ length: 8 }, roundTrip);
    expect(steps[0]).toBeLessThanOrEqual(1);
    expect(Math.max(...steps.slice(0, 3))).toBeLessThanOrEqual(5);
    expect(steps.at(-1)).toBeGreaterThanOrEqual(9);
  });

  test("follows a capacity that falls and rises", async () => {
    const random = seededRandom(7);
    const clock = new VirtualClock();
    const limiter = new Limiter({ concurrency: {} }, clock);
    const limits: number[] = [];
    for (const at of [29_000, 59_000, 119_000])
      clock.after(at, () => limits.push(limiter.state.limit));
    await useUp(
      limiter,
      clock,
      (ms) => (ms < 30_000 ? 200 : ms < 60_000 ? 50 : 300),
      120_000,
      () => 1000 * (0.5 + random()),
    );
    expect(limits[0]).toBeGreaterThan(180);
    expect(limits[1]).toBeLessThan(60);
    expect(limits[1]).toBeGreaterThan(40);
    expect(limits[2]).toBeGreaterThan(280);
  });

  /** Its limit each second: an endpoint for 100 calls of a second, of which `fails` some. */
  async function limitsOf(
    fails: (ms: number, nth: number) => LimitReport["outcome"] | undefined,
    untilMs: number,
  ): Promise<number[]> {
    const random = seededRandom(5);
    const clock = new VirtualClock();
    const limiter = new Limiter({ concurrency: {} }, clock);
    let atServer = 0;
    let calls = 0;
    const one = (): void =>
      void limiter.ask({}, (lease) => {
        const isFull = atServer >= 100;
        const failure = isFull ? "refused" : fails(clock.now(), calls++);
        // A connection that is refused is so at once; an answer without use takes as long as others.
        const isQuick = isFull || (failure === "failed" && clock.now() % 2 === 0);
        atServer += 1;
        clock.after(isQuick ? 5 : 1000 * (0.5 + random()), () => {
          atServer -= 1;
          lease.release({ outcome: failure ?? "ok" });
          clock.after(10, one);
        });
      });
    for (let n = 0; n < 130; n++) one();
    const limits: number[] = [];
    for (let ms = 1000; ms <= untilMs; ms += 1000) {
      await clock.advanceTo(ms);
      limits.push(limiter.state.limit);
    }
    return limits;
  }

  test.each(["failed", "malformed"] as const)(
    "is kept by answers of which one of 25 is %s at any load",
    async (outcome) => {
      const limits = await limitsOf((_, nth) => (nth % 25 === 7 ? outcome : undefined), 60_000);
      expect(Math.min(...limits.slice(20))).toBeGreaterThanOrEqual(85);
    },
  );

  test("is back some round trips after an outage in which connections were refused", async () => {
    const isDown = (ms: number): boolean => ms >= 20_000 && ms < 25_000;
    const limits = await limitsOf((ms) => (isDown(ms) ? "failed" : undefined), 40_000);
    expect(limits[19]).toBeGreaterThanOrEqual(95);
    // A tenth less for each second, and not for each refused connection.
    expect(limits[24]).toBeGreaterThanOrEqual(50);
    expect(limits[24]).toBeLessThan(90);
    expect(Math.min(...limits.slice(30))).toBeGreaterThanOrEqual(95);
  });

  test("falls as long as much fails, and is back by doubling", () => {
    const limit = new AdaptiveLimit({ initial: 400, max: 400 });
    const roundTrip = (outcome: "ok" | "failed"): number => {
      const tickets = Array.from({ length: limit.limit }, () => limit.sent(limit.limit));
      for (const ticket of tickets) {
        limit.answered({ ticket, latencyMs: 1000, outcome }, limit.limit);
      }
      return limit.limit;
    };
    roundTrip("ok");
    for (let n = 0; n < 100; n++) roundTrip("failed");
    expect(limit.limit).toBe(1);
    const back = Array.from({ length: 14 }, () => roundTrip("ok"));
    expect(back.findIndex((value) => value === 400)).toBeLessThan(14);
    expect(back.at(-1)).toBe(400);
  });

  test("settles below a number at which calls fail instead of being refused", () => {
    const limit = new AdaptiveLimit();
    let failed = 0;
    let calls = 0;
    for (let n = 0; n < 400; n++) {
      const inFlight = limit.limit;
      const tickets = Array.from({ length: inFlight }, (_, index) => limit.sent(index + 1));
      for (const [index, ticket] of tickets.entries()) {
        // All are late where there are more than it can answer in time.
        const outcome = inFlight > 200 && index % 2 === 0 ? "failed" : "ok";
        limit.answered({ ticket, latencyMs: 1000, outcome }, inFlight);
        if (n >= 100 && outcome === "failed") failed += 1;
        if (n >= 100) calls += 1;
      }
    }
    expect(limit.limit).toBeGreaterThanOrEqual(160);
    expect(failed / calls).toBeLessThan(0.1);
  });

  test("does not grow while it is not used up, and is lowered once for a burst", () => {
    const limit = new AdaptiveLimit({ initial: 100 });
    const ticket = limit.sent(10);
    for (let n = 0; n < 1000; n++) limit.answered({ ticket, latencyMs: 1, outcome: "ok" }, 10);
    expect(limit.limit).toBe(100);
    const burst = Array.from({ length: 20 }, (_, index) => limit.sent(81 + index));
    for (const one of burst) limit.answered({ ticket: one, latencyMs: 1, outcome: "refused" }, 100);
    expect(limit.limit).toBe(80);
    const failing = Array.from({ length: 20 }, () => limit.sent(80));
    for (const one of failing) limit.answered({ ticket: one, latencyMs: 1, outcome: "failed" }, 80);
    expect(limit.limit).toBe(72);
  });

  test("slow answers lower it, if they are to", () => {
    const limit = new AdaptiveLimit({ initial: 10, latencyTolerance: 3, min: 2 });
    limit.answered({ ticket: limit.sent(1), latencyMs: 100, outcome: "ok" }, 1);
    limit.answered({ ticket: limit.sent(1), latencyMs: 299, outcome: "ok" }, 1);
    expect(limit.limit).toBe(10);
    for (let n = 0; n < 100; n++)
      limit.answered({ ticket: limit.sent(1), latencyMs: 301, outcome: "ok" }, 1);
    expect(limit.limit).toBe(2);
  });

  test("an endpoint that has become slower for good is not slow any more", () => {
    const limit = new AdaptiveLimit({ initial: 10, latencyTolerance: 3, min: 2 });
    const answer = (latencyMs: number, roundTrips: number): void => {
      for (let n = 0; n < roundTrips; n++) {
        const { limit: inFlight } = limit;
        const tickets = Array.from({ length: inFlight }, () => limit.sent(inFlight));
        for (const ticket of tickets)
          limit.answered({ ticket, latencyMs, outcome: "ok" }, inFlight);
      }
    };
    answer(100, 1);
    answer(301, 49);
    expect(limit.limit).toBe(2);
    answer(301, 60);
    expect(limit.limit).toBeGreaterThan(2);
  });
});

/** A second of a limit that spreads a minute's worth over 61 s; to the thousandth. */
function inItsSeconds(ms: number): number {
  return Math.round((ms * 60) / 61) / 1000;
}

describe("a limiter", () => {
  const start = (
    settings: LimiterSettings,
  ): {
    clock: VirtualClock;
    limiter: Limiter;
    times: number[];
    leases: Lease[];
    ask: (request?: { lane?: string; tokens?: number }) => Promise<void>;
  } => {
    const clock = new VirtualClock();
    const limiter = new Limiter(settings, clock);
    const times: number[] = [];
    const leases: Lease[] = [];
    return {
      clock,
      limiter,
      times,
      leases,
      async ask(request) {
        leases.push(await acquire(limiter, request));
        times.push(clock.now());
      },
    };
  };

  test("keeps requests a minute, in order", async () => {
    const { clock, times, ask, leases } = start({ requestsPerMinute: 60 });
    for (let n = 0; n < 4; n++) void ask();
    await clock.advanceTo(10_000);
    expect(times.map(inItsSeconds)).toEqual([0, 1, 2, 3]);
    expect(leases.map(({ waitedMs }) => inItsSeconds(waitedMs))).toEqual([0, 1, 2, 3]);
  });

  test("counts the further requests of a call, before calls that have not begun", async () => {
    const clock = new VirtualClock();
    const limiter = new Limiter({ requestsPerMinute: 60, concurrency: 1 }, clock);
    const order: string[] = [];
    const asked = (name: string) => (): void => void order.push(`${name} ${clock.now()}`);
    const lease = await acquire(limiter);
    void limiter.ask({}, asked("a call"));
    limiter.askFurther(asked("given up"))();
    for (const name of ["second", "third"]) limiter.askFurther(asked(name));
    await clock.advanceTo(10_000);
    expect(limiter.state).toMatchObject({ inFlight: 1, waiting: 1, requests: { used: 3 } });
    lease.release({ outcome: "ok" });
    await clock.advanceTo(20_000);
    expect(order.map((one) => one.replace(/ \d.*/, ""))).toEqual(["second", "third", "a call"]);
    expect(limiter.state.requests).toEqual({ limit: 60, used: 4 });
    const [second = 0, third = 0] = order.map((one) => Number(one.split(" ").at(-1)));
    expect(second).toBeGreaterThanOrEqual(1000);
    expect(third).toBeGreaterThanOrEqual(2000);
  });

  test("keeps tokens a minute, and puts its estimates right", async () => {
    const { clock, times, ask, leases } = start({ tokensPerMinute: 6000 });
    for (let n = 0; n < 3; n++) void ask({ tokens: 100 });
    await clock.advanceTo(0);
    expect(times).toEqual([0]);
    // It used a tenth of it.
    leases[0]?.release({ outcome: "ok", tokens: 10 });
    await clock.advanceTo(105);
    expect(times.map(inItsSeconds)).toEqual([0, 0.1]);
    // Twice as much as it was thought to.
    leases[1]?.release({ outcome: "ok", tokens: 200 });
    leases[1]?.release({ outcome: "ok", tokens: 0 });
    await clock.advanceTo(10_000);
    expect(times.map(inItsSeconds)).toEqual([0, 0.1, 2.1]);
  });

  test("lets one through that asks for more than a second's worth, and the next one pays for it", async () => {
    const { clock, times, ask } = start({ tokensPerMinute: 600 });
    void ask({ tokens: 50 });
    void ask({ tokens: 1 });
    await clock.advanceTo(60_000);
    expect(times.map(inItsSeconds)).toEqual([0, 4.1]);
  });

  test.each([
    ["requests", 1, 7],
    ["requests", 2, 600],
    ["tokens", 3, 50_000],
  ] as const)(
    "never more than the limit in any minute, and nearly all of it (%s, seed %d)",
    async (kind, seed, perMinute) => {
      const random = seededRandom(seed);
      const { clock, limiter } = start(
        kind === "requests" ? { requestsPerMinute: perMinute } : { tokensPerMinute: perMinute },
      );
      const taken: { readonly atMs: number; readonly count: number }[] = [];
      const over = new AbortController();
      const caller = async (): Promise<void> => {
        while (!over.signal.aborted) {
          const tokens = Math.ceil(random() * 3000);
          const lease = await acquire(limiter, { tokens });
          // Calls take up to a second to get there.
          taken.push({
            atMs: clock.now() + 999 * random(),
            count: kind === "requests" ? 1 : tokens,
          });
          await clock.sleep(100 * random());
          lease.release({ outcome: "ok" });
        }
      };
      const callers = Array.from({ length: 20 }, caller);
      await clock.advanceTo(300_000);
      over.abort();
      await clock.advanceTo(600_000);
      await Promise.all(callers);
      const inFive = taken.filter(({ atMs }) => atMs < 300_000);
      const total = inFive.reduce((sum, { count }) => sum + count, 0);
      expect(total).toBeGreaterThan(0.9 * 5 * perMinute);
      for (const { atMs } of inFive) {
        const minute = inFive.filter((one) => one.atMs >= atMs && one.atMs < atMs + 60_000);
        expect(minute.reduce((sum, { count }) => sum + count, 0)).toBeLessThanOrEqual(perMinute);
      }
    },
  );

  test.each([
    ["a call is thought to use more than a second's worth", 2000, 300, 0.75],
    ["a call is thought to use a little more than it does", 500, 300, 0.9],
    ["nobody knows what a call uses", 100, 1000, 0.9],
  ])("lets through what the endpoint gives where %s", async (_, tokens, used, share) => {
    const perMinute = 60_000;
    const { clock, limiter } = start({ tokensPerMinute: perMinute });
    const sentMs: number[] = [];
    const over = new AbortController();
    const caller = async (): Promise<void> => {
      while (!over.signal.aborted) {
        const lease = await acquire(limiter, { tokens });
        sentMs.push(clock.now());
        await clock.sleep(2000);
        lease.release({ outcome: "ok", tokens: used });
      }
    };
    const callers = Array.from({ length: 20 }, caller);
    await clock.advanceTo(300_000);
    over.abort();
    expect(sentMs.length * used).toBeGreaterThan(share * 5 * perMinute);
    if (used < tokens) {
      for (const from of sentMs) {
        const minute = sentMs.filter((one) => one >= from && one < from + 60_000);
        expect(minute.length * used).toBeLessThanOrEqual(perMinute);
        // In no burst.
        const second = sentMs.filter((one) => one >= from && one < from + 1000);
        expect(second.length).toBeLessThanOrEqual(2 * (perMinute / 60 / used) + 1);
      }
    }
    await clock.advanceTo(600_000);
    await Promise.all(callers);
  });

  test("saves up nothing that was given back and that nobody waits for", async () => {
    const { clock, times, ask, leases } = start({ tokensPerMinute: 6000 });
    await ask({ tokens: 1000 });
    leases[0]?.release({ outcome: "ok", tokens: 0 });
    await clock.advanceTo(15_000);
    for (let n = 0; n < 3; n++) void ask({ tokens: 100 });
    await clock.advanceTo(30_000);
    expect(times.slice(1).map((ms) => inItsSeconds(ms - 15_000))).toEqual([0, 1, 2]);
  });

  test("stops calling an endpoint that fails, and lets a probe through", async () => {
    const { clock, limiter, times, ask, leases } = start({
      breaker: { window: 2, openMs: 1000, probes: 1 },
    });
    await ask();
    leases[0]?.release({ outcome: "failed" });
    expect(limiter.state.breaker).toBe("open");
    for (let n = 0; n < 3; n++) void ask();
    await clock.advanceTo(5000);
    expect(times).toEqual([0, 1000]);
    leases[1]?.release({ outcome: "ok" });
    await clock.advanceTo(5000);
    expect(times).toEqual([0, 1000, 5000, 5000]);
    expect(limiter.state.breaker).toBe("closed");
  });

  test("learns nothing from calls that were given up, and lets another probe through in their place", async () => {
    const { clock, limiter, times, ask, leases } = start({
      concurrency: { initial: 4, latencyTolerance: 3 },
      breaker: { window: 2, openMs: 1000, probes: 1 },
    });
    const answer = async (outcome: LimitReport["outcome"], afterMs: number): Promise<void> => {
      await ask();
      await clock.advanceTo(clock.now() + afterMs);
      leases.at(-1)?.release({ outcome });
    };
    for (const outcome of ["unknown", "answered"] as const) {
      for (let n = 0; n < 10; n++) await answer(outcome, 0);
    }
    for (let n = 0; n < 10; n++) await answer("ok", 100);
    expect(limiter.state).toMatchObject({ limit: 4, breaker: "closed" });
    await answer("failed", 0);
    expect(limiter.state.breaker).toBe("open");
    times.length = 0;
    for (let n = 0; n < 2; n++) void ask();
    await clock.advanceTo(3000);
    expect(times).toEqual([2000]);
    leases.at(-1)?.release({ outcome: "unknown" });
    await clock.advanceTo(3000);
    expect(times).toEqual([2000, 3000]);
    expect(limiter.state.breaker).toBe("half-open");
    leases.at(-1)?.release({ outcome: "answered" });
    expect(limiter.state.breaker).toBe("closed");
  });

  test("hears at once of a call that timed out and goes on, and frees its place when it is over", async () => {
    const { clock, limiter, times, ask, leases } = start({
      tokensPerMinute: 6000,
      concurrency: { initial: 2, min: 2 },
      breaker: { window: 2, openMs: 1000, probes: 1 },
    });
    await ask({ tokens: 100 });
    leases[0]?.answered({ outcome: "failed", tokens: 40 });
    expect(limiter.state).toMatchObject({ breaker: "open", inFlight: 1, tokens: { used: 40 } });
    for (let n = 0; n < 3; n++) void ask();
    await clock.advanceTo(1500);
    // A probe that hangs.
    expect(times.slice(1)).toEqual([1000]);
    leases[1]?.answered({ outcome: "failed" });
    expect(limiter.state).toMatchObject({ breaker: "open", inFlight: 2, waiting: 2 });
    await clock.advanceTo(4000);
    // The breaker would allow a probe, but there is no room yet.
    expect(limiter.state).toMatchObject({ waiting: 2 });
    leases[0]?.release({ outcome: "failed", tokens: 90 });
    await clock.advanceTo(4001);
    expect(times.slice(2)).toEqual([4000]);
    expect(limiter.state).toMatchObject({ breaker: "half-open", inFlight: 2, waiting: 1 });
    // Their late answers count no more.
    leases[1]?.release({ outcome: "failed" });
    leases[2]?.release({ outcome: "ok" });
    leases[2]?.answered({ outcome: "refused", retryAfterMs: 1000 });
    await clock.advanceTo(4002);
    expect(limiter.state).toMatchObject({ breaker: "closed", inFlight: 1, waiting: 0, refused: 0 });
    expect(limiter.state.tokens).toMatchObject({ used: 40 });
  });

  test("an adaptive limit hears of timeouts while the calls go on", async () => {
    const { limiter, ask, leases } = start({ concurrency: { initial: 20 } });
    await Promise.all(Array.from({ length: 20 }, () => ask()));
    for (const lease of leases) lease.answered({ outcome: "failed" });
    expect(limiter.state).toMatchObject({ limit: 18, inFlight: 20 });
    for (const lease of leases) lease.release({ outcome: "failed" });
    expect(limiter.state).toMatchObject({ limit: 18, inFlight: 0 });
  });

  test("a call that it did not let through itself is no probe", async () => {
    const { clock, limiter, times, ask, leases } = start({
      breaker: { window: 2, openMs: 1000, probes: 1 },
    });
    await ask();
    leases[0]?.release({ outcome: "failed" });
    await clock.advanceTo(2000);
    limiter.adopt();
    expect(limiter.state.breaker).toBe("open");
    await ask();
    expect(times).toEqual([0, 2000]);
  });

  describe("in the place of another one", () => {
    const breaker = { window: 2, openMs: 1000, probes: 1 };
    const concurrency = { initial: 20 };
    /** Its limit is 18 (20 calls failed), and its breaker open until 1000. */
    const failed = async (): Promise<ReturnType<typeof start>> => {
      const before = start({ concurrency, breaker, requestsPerMinute: 60_000 });
      for (let n = 0; n < 20; n++) void before.ask();
      await before.clock.advanceTo(100);
      for (const lease of before.leases) lease.release({ outcome: "failed" });
      return before;
    };
    /** The times at which calls are let through, of which the first one is never answered. */
    const timesOf = async (
      { clock, limiter: before }: ReturnType<typeof start>,
      settings: LimiterSettings,
      count: number,
      untilMs: number,
    ): Promise<readonly [times: readonly number[], limiter: Limiter]> => {
      const limiter = new Limiter(settings, clock);
      limiter.takeOver(before);
      const times: number[] = [];
      for (let n = 0; n < count; n++) limiter.ask({}, () => times.push(clock.now()));
      await clock.advanceTo(untilMs);
      return [times, limiter];
    };

    test("it goes on with the breaker and the limit that were found, if they are to be alike", async () => {
      const [times, limiter] = await timesOf(await failed(), { concurrency, breaker }, 2, 5000);
      expect(times).toEqual([1100]);
      expect(limiter.state).toMatchObject({ limit: 18, breaker: "half-open", waiting: 1 });
    });

    test("it begins anew with others", async () => {
      const others = { concurrency: { initial: 20, max: 50 }, breaker: { ...breaker, probes: 2 } };
      const [times, limiter] = await timesOf(await failed(), others, 2, 500);
      expect(times).toEqual([100, 100]);
      expect(limiter.state).toMatchObject({ limit: 20, breaker: "closed" });
    });

    test("it waits for no probe of that one", async () => {
      const before = await failed();
      void before.ask();
      await before.clock.advanceTo(1200);
      expect(before.limiter.state.breaker).toBe("half-open");
      const [times, limiter] = await timesOf(before, { concurrency, breaker }, 1, 1300);
      expect(times).toEqual([1200]);
      // It says nothing of that one's call.
      before.leases.at(-1)?.release({ outcome: "failed" });
      expect(limiter.state).toMatchObject({ breaker: "half-open", inFlight: 1 });
    });

    test("it keeps the pause and the remainders that were announced", async () => {
      const before = start({});
      for (let n = 0; n < 2; n++) await before.ask();
      const announced = { requests: { remaining: 2, resetMs: 5000 } };
      before.leases[0]?.release({ outcome: "ok", announced });
      before.leases[1]?.release({ outcome: "refused", retryAfterMs: 300 });
      const [times, limiter] = await timesOf(before, { concurrency: 10 }, 3, 6000);
      expect(times).toEqual([300, 5000, 5000]);
      expect(limiter.state).toMatchObject({ inFlight: 3, waiting: 0 });
    });
  });

  test("hears again of a pause and of remainders that were reported to the one before", async () => {
    const { clock, limiter, times, ask } = start({});
    const requests = { remaining: 2, resetMs: 5000 };
    limiter.heardBefore({ retryAfterMs: 300, announced: { requests } });
    limiter.heardBefore({ announced: { requests: { remaining: 1, resetMs: 4000 } } });
    for (let n = 0; n < 2; n++) void ask();
    await clock.advanceTo(6000);
    expect(times).toEqual([300, 5000]);
  });

  test("can be paused, and counts calls that it did not let through itself", async () => {
    const { clock, limiter, times, ask } = start({ concurrency: 2 });
    limiter.pause(300);
    const adopted = limiter.adopt();
    for (let n = 0; n < 2; n++) void ask();
    await clock.advanceTo(500);
    expect(times).toEqual([300]);
    adopted.release({ outcome: "ok" });
    await clock.advanceTo(600);
    expect(times).toEqual([300, 500]);
  });

  test("counts what another one has let through in the minute before", async () => {
    const clock = new VirtualClock();
    await clock.advanceTo(100_000);
    const limiter = new Limiter({ requestsPerMinute: 600 }, clock);
    limiter.remember({ agoMs: 30_000, requests: 600, tokens: 0 });
    // Of a minute that is over.
    limiter.remember({ agoMs: 90_000, requests: 5, tokens: 0 });
    expect(limiter.state.requests?.used).toBe(600);
    const lease = acquire(limiter);
    await clock.advanceTo(200_000);
    expect((await lease).waitedMs).toBeGreaterThan(29_000);
    expect((await lease).waitedMs).toBeLessThan(33_000);
  });

  test("keeps calls at once; who gives back a lease lets the next one in", async () => {
    const { clock, times, ask, leases, limiter } = start({ concurrency: 2 });
    for (let n = 0; n < 4; n++) void ask();
    await clock.advanceTo(50);
    expect(times).toEqual([0, 0]);
    expect(limiter.state).toMatchObject({ waiting: 2, inFlight: 2, limit: 2, granted: 2 });
    leases[0]?.release({ outcome: "ok" });
    await clock.advanceTo(60);
    leases[1]?.release({ outcome: "failed" });
    await clock.advanceTo(70);
    expect(times).toEqual([0, 0, 50, 60]);
  });

  test("waits as long as the endpoint says", async () => {
    const { clock, times, ask, leases, limiter } = start({});
    await ask();
    leases[0]?.release({ outcome: "refused", retryAfterMs: 500 });
    void ask();
    await clock.advanceTo(2000);
    expect(times).toEqual([0, 500]);
    expect(limiter.state.refused).toBe(1);
  });

  test("serves lanes by their shares, and forgets who has left", async () => {
    const { clock, limiter } = start({ concurrency: 1, shares: { training: 2 } });
    const order: string[] = [];
    const held = await acquire(limiter);
    const leave = limiter.ask({ lane: "training" }, () => order.push("one that has left"));
    for (const lane of [
      "training",
      "training",
      "training",
      "training",
      "validation",
      "validation",
    ]) {
      void acquire(limiter, { lane }).then((lease) => {
        order.push(lane);
        lease.release({ outcome: "ok" });
      });
    }
    leave();
    leave();
    expect(limiter.state.waiting).toBe(6);
    held.release({ outcome: "ok" });
    await clock.advanceTo(1);
    expect(order.slice(0, 3).filter((lane) => lane === "validation")).toHaveLength(1);
    expect(order).toHaveLength(6);
    expect(limiter.state).toMatchObject({ waiting: 0, inFlight: 0 });
  });
});

describe("what an endpoint says is left of its limits", () => {
  const ok = (
    requests?: readonly [remaining: number, resetMs: number],
    tokens?: readonly [remaining: number, resetMs: number],
  ): LimitReport => {
    const said = ([remaining, resetMs]: readonly [number, number]): object => ({
      remaining,
      resetMs,
    });
    return {
      outcome: "ok",
      announced: {
        ...(requests === undefined ? {} : { requests: said(requests) }),
        ...(tokens === undefined ? {} : { tokens: said(tokens) }),
      } as NonNullable<LimitReport["announced"]>,
    };
  };
  const start = (
    settings: LimiterSettings = {},
  ): {
    readonly clock: VirtualClock;
    readonly leases: Lease[];
    readonly times: number[];
    readonly ask: (count: number, tokens?: number) => Promise<void>;
  } => {
    const clock = new VirtualClock();
    const limiter = new Limiter(settings, clock);
    const leases: Lease[] = [];
    const times: number[] = [];
    const ask = async (count: number, tokens = 0): Promise<void> => {
      for (let n = 0; n < count; n++) {
        void acquire(limiter, { tokens }).then((lease) => {
          leases.push(lease);
          times.push(clock.now());
        });
      }
      await clock.advanceTo(clock.now());
    };
    return { clock, leases, times, ask };
  };

  test("is let through, and no more until all of it is there again", async () => {
    const { clock, leases, times, ask } = start();
    await ask(1);
    leases[0]?.release(ok([3, 1000]));
    await ask(5);
    expect(times).toEqual([0, 0, 0, 0]);
    await clock.advanceTo(999);
    expect(times).toHaveLength(4);
    await clock.advanceTo(1000);
    // Nothing is known any more.
    expect(times.slice(4)).toEqual([1000, 1000]);
  });

  test("is less by the calls that it may not have counted, until a later one's answer knows better", async () => {
    const { leases, times, ask } = start();
    await ask(4);
    // Three were let through behind the first one.
    leases[0]?.release(ok([4, 1000]));
    await ask(9);
    expect(times).toHaveLength(5);
    // One behind the fourth, and two before it that may come to the endpoint later.
    leases[3]?.release(ok([3, 1000]));
    await ask(0);
    expect(times).toHaveLength(5);
    // They are over, and it has counted all.
    leases[1]?.release(ok());
    leases[2]?.release(ok());
    leases[4]?.release(ok([3, 1000]));
    await ask(0);
    expect(times).toHaveLength(8);
    // Somebody else has used it up.
    leases[5]?.release(ok([0, 1000]));
    await ask(0);
    expect(times).toHaveLength(8);
    leases[7]?.release(ok([5, 1000]));
    await ask(0);
    expect(times).toHaveLength(12);
  });

  test("is less by a call that timed out and may still come, until it is over", async () => {
    const { leases, times, ask } = start();
    await ask(2);
    leases[0]?.answered({ outcome: "failed" });
    leases[1]?.release(ok([1, 1000]));
    await ask(1);
    expect(times).toHaveLength(2);
    leases[0]?.release({ outcome: "failed" });
    await ask(0);
    expect(times).toHaveLength(2);
  });

  test("is not there again before the latest time that was said", async () => {
    const { clock, leases, times, ask } = start();
    await ask(2);
    leases[1]?.release(ok([0, 1000]));
    leases[0]?.release(ok([1, 900]));
    await ask(1);
    await clock.advanceTo(999);
    expect(times).toHaveLength(2);
    await clock.advanceTo(1000);
    expect(times).toHaveLength(3);
  });

  test("of tokens holds back who needs more", async () => {
    const { clock, leases, times, ask } = start();
    await ask(1, 100);
    leases[0]?.release(ok([50, 1000], [150, 500]));
    await ask(2, 100);
    expect(times).toEqual([0, 0]);
    await clock.advanceTo(500);
    expect(times).toEqual([0, 0, 500]);
    leases[1]?.release(ok(undefined, [0, 100]));
    await ask(1);
    expect(times).toHaveLength(3);
    await clock.advanceTo(600);
    expect(times).toEqual([0, 0, 500, 600]);
  });

  test("changes nothing where it says nothing", async () => {
    const run = async (report: LimitReport): Promise<number[]> => {
      const { clock, leases, times, ask } = start({ requestsPerMinute: 600, concurrency: 3 });
      await ask(40);
      for (let ms = 0; ms < 10_000; ms += 50) {
        await clock.advanceTo(ms);
        for (const lease of leases.splice(0)) lease.release(report);
      }
      return times;
    };
    const silent = await run({ outcome: "ok" });
    expect(silent).toHaveLength(40);
    expect(await run(ok())).toEqual(silent);
    expect(await run(ok([1000, 10], [1e6, 10]))).toEqual(silent);
  });
});

describe("a failed call tells the limits of its endpoint", () => {
  const used = { inputTokens: 9000, outputTokens: 1000, totalTokens: 10_000 };
  const thrown = { code: "SCORE_THREW", name: "EndpointError", message: "" } as const;
  test.each<[string, Partial<ScoreFailure>, LimitReport["outcome"]]>([
    ["a refusal", { status: 429 }, "refused"],
    ["a refusal for a while", { status: 503, retryAfterMs: 10 }, "refused"],
    ["an error of the server", { status: 500 }, "failed"],
    ["a broken connection", { transport: "broken" }, "failed"],
    ["a broken connection in an answer", { transport: "broken", status: 200 }, "failed"],
    ["a refused connection", { errorCode: "ECONNREFUSED" }, "failed"],
    ["an answer that is no JSON", { errorCode: "MALFORMED_ANSWER" }, "malformed"],
    ["an error in a 200", { errorCode: "ENDPOINT_ERROR", status: 200 }, "malformed"],
    ["a malformed answer of the AI SDK", { name: "AI_APICallError", status: 200 }, "malformed"],
    ["a request with a fault", { status: 400 }, "answered"],
  ])("%s, and the tokens of its requests before", (_, error, outcome) => {
    const measured = { latencyMs: 1, attempts: 1, waitedMs: 0 };
    const failed = { valid: false, error: { ...thrown, ...error }, ...measured } as const;
    expect(reportOf({ ...failed, used }, false)).toMatchObject({ outcome, tokens: 10_000 });
    const unknown = outcome === "refused" ? 0 : undefined;
    expect(reportOf(failed, false).tokens).toBe(unknown);
  });

  test("a malformed answer opens a breaker, as any failure does", () => {
    const limiter = new Limiter({ breaker: { window: 4 } }, new VirtualClock());
    for (let n = 0; n < 4; n++) limiter.ask({}, (lease) => lease.release({ outcome: "malformed" }));
    expect(limiter.state.breaker).toBe("open");
  });
});
