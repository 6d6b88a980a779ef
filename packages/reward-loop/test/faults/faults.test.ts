/** What kind of failure it was, whether it is tried again, and when an endpoint is left alone. */
import { describe, expect, test } from "vitest";
import { CircuitBreaker } from "../../src/faults/circuit-breaker.ts";
import { classOf } from "../../src/faults/failure-class.ts";
import { httpDetailsOf } from "../../src/faults/http-details.ts";
import { LatencyQuantile } from "../../src/faults/latency-quantile.ts";
import { RetryPolicy } from "../../src/faults/retry-policy.ts";
import { failureOf, timeoutFailure } from "../../src/outcome.ts";

describe("the class of a failure", () => {
  test.each([
    [Object.assign(new Error("x"), { status: 429 }), "rate-limit"],
    [Object.assign(new Error("x"), { status: 503, headers: { "Retry-After": "2" } }), "rate-limit"],
    [Object.assign(new Error("x"), { status: 503 }), "infrastructure"],
    [Object.assign(new Error("x"), { response: { status: 500 } }), "infrastructure"],
    [Object.assign(new Error("x"), { statusCode: 408 }), "timeout"],
    [Object.assign(new Error("x"), { status: 400 }), "data"],
    [Object.assign(new Error("x"), { code: "ECONNRESET" }), "infrastructure"],
    [Object.assign(new Error("x"), { code: "UND_ERR_SOCKET" }), "infrastructure"],
    [Object.assign(new Error("x"), { code: "UND_ERR_HEADERS_TIMEOUT" }), "timeout"],
    [new DOMException("late", "TimeoutError"), "timeout"],
    [new TypeError("fetch failed", { cause: { status: 502 } }), "infrastructure"],
    [new TypeError("undefined is not a function"), "user-code"],
    ["a text", "user-code"],
  ])("%s is %s", (error, wanted) => {
    expect(classOf(failureOf(error))).toBe(wanted);
  });

  test("of the loop's own failures", () => {
    expect(classOf(timeoutFailure(5))).toBe("timeout");
    expect(classOf({ code: "INVALID_SAMPLE", name: "", message: "" })).toBe("data");
    expect(classOf({ code: "EXECUTOR_DIED", name: "", message: "" })).toBe("user-code");
  });
});

describe("details of HTTP", () => {
  test.each([
    [
      { status: 429, headers: new Headers({ "retry-after": "1.5" }) },
      { status: 429, retryAfterMs: 1500 },
    ],
    [
      { status: 429, headers: { "retry-after-ms": "250", "retry-after": "9" } },
      { status: 429, retryAfterMs: 250 },
    ],
    [
      { responseHeaders: { "Retry-After": "Thu, 01 Jan 1970 00:00:03 GMT" } },
      { retryAfterMs: 2000 },
    ],
    [{ status: 200.5, headers: { "retry-after": "soon" } }, {}],
    [{ status: 99, headers: { "retry-after": "-1" } }, {}],
    [
      {
        status: 429,
        headers: {
          get: () => {
            throw new Error("no");
          },
        },
      },
      { status: 429 },
    ],
    [undefined, {}],
    [7, {}],
  ])("%j", (error, details) => {
    expect(httpDetailsOf(error, 1000)).toEqual(details);
  });

  test("a getter that throws is no detail", () => {
    const error = Object.defineProperty(new Error("x"), "status", {
      get: () => {
        throw new Error("mine");
      },
    });
    expect(httpDetailsOf(error)).toEqual({});
    expect(failureOf(error)).toMatchObject({ code: "SCORE_THREW", message: "x" });
  });
});

describe("a retry policy", () => {
  test("waits longer each time, at random, and at least as long as it was asked to", () => {
    const policy = new RetryPolicy({ attempts: 5, baseMs: 100, maxMs: 250 }, () => 0.5);
    expect([1, 2, 3, 4, 5].map((attempts) => policy.delayMs(attempts, "infrastructure"))).toEqual([
      50,
      100,
      125,
      125,
      undefined,
    ]);
    expect(policy.delayMs(1, "rate-limit", 1000)).toBe(1050);
  });

  test("repeats nothing that would fail again", () => {
    const policy = new RetryPolicy();
    expect(policy.delayMs(1, "data")).toBeUndefined();
    expect(policy.delayMs(1, "user-code")).toBeUndefined();
    expect(new RetryPolicy({ classes: ["user-code"] }).delayMs(1, "user-code")).toBeDefined();
    expect(new RetryPolicy({ attempts: 1 }).delayMs(1, "timeout")).toBeUndefined();
  });

  test("has a budget: a fifth of the first tries, and ten to begin with", () => {
    const policy = new RetryPolicy({ attempts: 2 });
    let retries = 0;
    for (let n = 0; n < 1000; n++) {
      policy.began();
      if (policy.delayMs(1, "infrastructure") !== undefined) retries += 1;
    }
    expect(retries).toBeGreaterThanOrEqual(205);
    expect(retries).toBeLessThanOrEqual(211);
    // What was not needed is saved, and not without end.
    for (let n = 0; n < 10_000; n++) policy.began();
    let burst = 0;
    while (policy.delayMs(1, "timeout") !== undefined) burst += 1;
    expect(burst).toBe(100);
    const free = new RetryPolicy({ budget: Infinity });
    for (let n = 0; n < 1000; n++) expect(free.delayMs(1, "timeout")).toBeDefined();
  });
});

describe("a circuit breaker", () => {
  const answering = (breaker: CircuitBreaker, count: number, ok: boolean, nowMs = 0): void => {
    for (let n = 0; n < count; n++) breaker.answered(breaker.sent(), ok, nowMs);
  };

  test("opens when half of the last calls failed, and is not judged by a few", () => {
    const breaker = new CircuitBreaker({ window: 20 });
    answering(breaker, 9, false);
    expect(breaker.state).toBe("closed");
    answering(breaker, 1, false);
    expect(breaker.state).toBe("open");
    expect(breaker.waitMs(1000)).toBe(4000);
    expect(breaker.waitMs(5000)).toBe(0);
  });

  test("looks at the last calls only", () => {
    const breaker = new CircuitBreaker({ window: 10 });
    answering(breaker, 100, true);
    answering(breaker, 4, false);
    answering(breaker, 10, true);
    answering(breaker, 4, false);
    expect(breaker.state).toBe("closed");
    answering(breaker, 1, false);
    expect(breaker.state).toBe("open");
  });

  test("lets probes through: it closes when all succeed, and waits twice as long when one fails", () => {
    const breaker = new CircuitBreaker({ window: 2, openMs: 100, probes: 2 });
    const before = breaker.sent();
    answering(breaker, 1, false);
    // What was sent before it opened says nothing.
    breaker.answered(before, true, 50);
    expect(breaker.state).toBe("open");
    const first = breaker.sent();
    expect(breaker.state).toBe("half-open");
    expect(breaker.waitMs(100)).toBe(0);
    breaker.answered(before, true, 105);
    const second = breaker.sent();
    expect(breaker.waitMs(100)).toBe(Infinity);
    breaker.answered(first, true, 110);
    breaker.answered(second, false, 120);
    expect(breaker.state).toBe("open");
    expect(breaker.waitMs(120)).toBe(200);
    const probes = [breaker.sent(), breaker.sent()] as const;
    breaker.answered(probes[0], true, 330);
    expect(breaker.state).toBe("half-open");
    breaker.answered(probes[1], true, 340);
    expect(breaker.state).toBe("closed");
    answering(breaker, 1, false, 400);
    expect(breaker.waitMs(400)).toBe(100);
  });
});

test("a probe that is given up says nothing, and another one takes its place", () => {
  const breaker = new CircuitBreaker({ window: 2, openMs: 100, probes: 1 });
  const before = breaker.sent();
  breaker.answered(breaker.sent(), false, 0);
  const probe = breaker.sent();
  expect(breaker.waitMs(100)).toBe(Infinity);
  breaker.givenUp(before);
  expect(breaker.waitMs(100)).toBe(Infinity);
  breaker.givenUp(probe);
  expect([breaker.state, breaker.waitMs(100)]).toEqual(["half-open", 0]);
  breaker.answered(breaker.sent(), true, 110);
  expect(breaker.state).toBe("closed");
});

test("a quantile of the last latencies, when enough are known", () => {
  const quantile = new LatencyQuantile(0.9);
  for (let n = 0; n < 50; n++) quantile.add(n);
  expect(quantile.value).toBeUndefined();
  for (let n = 50; n < 100; n++) quantile.add(n);
  expect(quantile.value).toBe(89);
  // Those of before are forgotten.
  for (let n = 0; n < 600; n++) quantile.add(1000);
  expect(quantile.value).toBe(1000);
});
