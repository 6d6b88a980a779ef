/** What kind of failure it was, whether it is tried again, and when an endpoint is left alone. */
import { setImmediate as turn } from "node:timers/promises";
import { SandboxResourceError } from "@rayling/reward-manager-registry";
import { describe, expect, test } from "vitest";
import { EndpointError } from "../../src/client/endpoint-error.ts";
import { CircuitBreaker } from "../../src/faults/circuit-breaker.ts";
import { classOf } from "../../src/faults/failure-class.ts";
import { httpDetailsOf } from "../../src/faults/http-details.ts";
import { HedgePolicy } from "../../src/faults/hedge.ts";
import { LatencyQuantile } from "../../src/faults/latency-quantile.ts";
import { announcedIn } from "@rayling/reward-manager-registry/values";
import { RetryPolicy } from "../../src/faults/retry-policy.ts";
import { timeoutFailure } from "../../src/outcome.ts";
import { failureOf } from "../../src/faults/thrown.ts";
import { VirtualClock } from "../virtual-clock.ts";

/** As clients of endpoints have them: without a name of their own. */
class APIConnectionError extends Error {}
class APIConnectionTimeoutError extends APIConnectionError {}
class APIUserAbortError extends Error {}
class RetryError extends Error {
  readonly lastError: unknown;
  constructor(lastError: unknown) {
    super("Failed after 3 attempts");
    this.lastError = lastError;
  }
}
const nameless = Object.defineProperty(new Error("x"), "name", {
  get: () => {
    throw new Error("no name");
  },
});

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
    [new APIConnectionError("Connection error."), "infrastructure"],
    [new APIConnectionTimeoutError("Request timed out."), "timeout"],
    [new APIUserAbortError("Request was aborted."), "timeout"],
    [new RetryError(Object.assign(new Error("x"), { statusCode: 429 })), "rate-limit"],
    [new RetryError(Object.assign(new Error("x"), { statusCode: 400 })), "data"],
    [new RetryError(new Error("x", { cause: { code: "ECONNREFUSED" } })), "infrastructure"],
    [Object.assign(new Error("Invalid JSON response"), { statusCode: 200 }), "infrastructure"],
    [new RetryError(Object.assign(new Error("x"), { statusCode: 200 })), "infrastructure"],
    [Object.assign(new Error("x"), { code: "MALFORMED_ANSWER" }), "infrastructure"],
    [new SandboxResourceError("the disk is full"), "infrastructure"],
    [new TypeError("undefined is not a function"), "user-code"],
    ["a text", "user-code"],
  ])("%s is %s", (error, wanted) => {
    expect(classOf(failureOf(error))).toBe(wanted);
  });

  test("of an answer that is no JSON is the endpoint's where a client parsed it, and the user's where they did", async () => {
    const thrownBy = async (work: () => unknown): Promise<unknown> => {
      try {
        return await work();
      } catch (error) {
        return error;
      }
    };
    const ofFetch = await thrownBy(() => new Response('{"choices": [').json());
    const ofUser = await thrownBy(() => JSON.parse("It is right."));
    const classes = [ofFetch, new Error("no verdict", { cause: ofFetch }), ofUser].map((error) =>
      classOf(failureOf(error)),
    );
    expect(classes).toEqual(["infrastructure", "infrastructure", "user-code"]);
    expect(failureOf(ofFetch)).toMatchObject({
      name: "SyntaxError",
      errorCode: "MALFORMED_ANSWER",
    });
  });

  const [parse, own] = [
    "at JSON.parse (<anonymous>)",
    "at computeScore (file:///me/reward.ts:3:9)",
  ];
  const sdk = "at file:///me/node_modules/openai/internal/parse.mjs:43:31";
  const ticks = "at process.processTicksAndRejections (node:internal/process/task_queues:105:5)";
  const helper = "at destr (file:///me/node_modules/destr/index.mjs:9:9)";
  test.each([
    ["an SDK after its await", [parse, sdk, ticks, `at async ${own.slice(3)}`], "infrastructure"],
    ["one of Windows", [parse, sdk.replaceAll("/", "\\"), ticks], "infrastructure"],
    ["a helper that the user called", [parse, helper, own, ticks], "user-code"],
    ["the user's own", [parse, own, ticks], "user-code"],
    ["a package's own parser", [helper, ticks], "user-code"],
    ["nobody that is known", [parse], "user-code"],
    ["no stack", [], "user-code"],
  ])("a SyntaxError of %s", (_, frames, wanted) => {
    const error = new SyntaxError("Unexpected end of JSON input");
    error.stack = [`SyntaxError: ${error.message}`, ...frames.map((one) => `    ${one}`)].join(
      "\n",
    );
    expect(classOf(failureOf(error))).toBe(wanted);
  });

  test("has the name of its class, where its errors have none of their own", () => {
    expect(failureOf(new APIConnectionTimeoutError("x")).name).toBe("APIConnectionTimeoutError");
    expect(failureOf(new DOMException("late", "TimeoutError")).name).toBe("TimeoutError");
    const named = Object.assign(new RetryError(undefined), { name: "AI_RetryError" });
    expect(failureOf(named).name).toBe("AI_RetryError");
    expect(failureOf(nameless)).toMatchObject({ name: "a name that cannot be read", message: "x" });
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
    // By the endpoint's own time, where it says it: this machine's clock may be wrong.
    ...[
      { "retry-after": "Tue, 14 Nov 2023 22:13:22 GMT" },
      { "x-ratelimit-reset": "1700000002", "x-ratelimit-remaining": "0" },
      { "x-ratelimit-reset-tokens": "2023-11-14T22:13:22Z" },
    ].map((said): [unknown, object] => [
      { status: 429, headers: { Date: "Tue, 14 Nov 2023 22:13:20 GMT", ...said } },
      { status: 429, retryAfterMs: 2000 },
    ]),
    [
      { status: 429, headers: { date: "now", "retry-after": "Thu, 01 Jan 1970 00:00:03 GMT" } },
      { status: 429, retryAfterMs: 2000 },
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
    [
      { status: 429, headers: { "retry-after": "2", "x-ratelimit-reset-requests": "6m0s" } },
      { status: 429, retryAfterMs: 2000 },
    ],
    [
      { status: 429, headers: new Headers({ "x-ratelimit-reset-requests": "6m0s" }) },
      { status: 429, retryAfterMs: 360_000 },
    ],
    [{ status: 503, headers: { "x-ratelimit-reset-requests": "6m0s" } }, { status: 503 }],
    [{ headers: { "x-ratelimit-reset": "6" } }, {}],
    [undefined, {}],
    [7, {}],
  ])("%j", (error, details) => {
    expect(httpDetailsOf(error, 1000)).toEqual(details);
  });

  test.each([
    ["1s", 1000],
    ["20ms", 20],
    ["6m0s", 360_000],
    ["1h2m3.5s", 3_723_500],
    ["2m59.56s", 179_560],
    ["500µs", 0.5],
    ["12", 12_000],
    ["0.25", 250],
    // A minute after now, as a Unix time and as a date.
    ["1700000060", 60_000],
    ["1700000060000", 60_000],
    ["2023-11-14T22:14:20Z", 60_000],
    // What has passed, is implausible or no time at all says nothing.
    ["1699999999", undefined],
    ["0", undefined],
    ["0s", undefined],
    ["-3", undefined],
    ["600000", undefined],
    ["25h", undefined],
    ["1 s", undefined],
    ["s", undefined],
    ["soon", undefined],
    ["", undefined],
  ])("a limit that begins anew at %j", (reset, wanted) => {
    const headers = { "X-RateLimit-Reset": reset, "x-ratelimit-remaining": "0" };
    expect(httpDetailsOf({ status: 429, headers }, 1_700_000_000_000)).toEqual({
      status: 429,
      ...(wanted === undefined ? {} : { retryAfterMs: wanted }),
    });
  });

  test.each([
    ["requests used up", { requests: ["0", "2s"], tokens: ["900", "6m0s"] }, 2000],
    ["tokens used up", { requests: ["9", "1h"], tokens: ["0", "30s"] }, 30_000],
    ["both used up", { requests: ["0", "2s"], tokens: ["0", "30s"] }, 30_000],
    ["neither told", { requests: [undefined, "2s"], tokens: [undefined, "30s"] }, 30_000],
    ["neither used up", { requests: ["9", "2s"], tokens: ["9", "30s"] }, undefined],
  ])("of several limits, %s", (_, limits, retryAfterMs) => {
    const headers = Object.entries(limits).flatMap(([kind, [remaining, reset]]) => [
      ...(remaining === undefined ? [] : [[`x-ratelimit-remaining-${kind}`, remaining]]),
      [`x-ratelimit-reset-${kind}`, reset],
    ]);
    const error = { status: 429, headers: Object.fromEntries(headers) as object };
    expect(httpDetailsOf(error).retryAfterMs).toBe(retryAfterMs);
  });

  test.each([
    [{}, undefined],
    [
      { "x-ratelimit-remaining-requests": "9", "x-ratelimit-reset-requests": "6m0s" },
      { requests: { remaining: 9, resetMs: 360_000 } },
    ],
    [
      {
        "x-ratelimit-remaining-tokens": "0",
        "x-ratelimit-reset-tokens": "20ms",
        "x-ratelimit-remaining-requests": "7",
        "x-ratelimit-reset-requests": "1",
        "ratelimit-remaining": "3",
        "ratelimit-reset": "2",
      },
      { requests: { remaining: 3, resetMs: 2000 }, tokens: { remaining: 0, resetMs: 20 } },
    ],
    [{ "retry-after": "2" }, { retryAfterMs: 2000 }],
    // Without a time, or without what is left, nothing is said.
    [{ "x-ratelimit-remaining-requests": "9" }, undefined],
    [{ "x-ratelimit-reset-requests": "6s" }, undefined],
    [{ "x-ratelimit-remaining": "many", "x-ratelimit-reset": "6" }, undefined],
    [{ "x-ratelimit-remaining": "-1", "x-ratelimit-reset": "6" }, undefined],
    [{ "x-ratelimit-remaining": "1", "x-ratelimit-reset": "600000" }, undefined],
  ])("of an answer that went well, %j", (given, wanted) => {
    const headers = new Headers(given);
    expect(announcedIn((name) => headers.get(name) ?? undefined, 1000)).toEqual(wanted);
  });

  test("an endpoint's own error keeps them", () => {
    const headers = new Headers({ "RateLimit-Reset": "3", "ratelimit-remaining": "0", other: "x" });
    const details = { code: "HTTP_STATUS", status: 429, headers };
    const error = new EndpointError("http://judge", "answered 429", details);
    expect(error.headers).toEqual({ "ratelimit-reset": "3", "ratelimit-remaining": "0" });
    expect(failureOf(error)).toMatchObject({ status: 429, retryAfterMs: 3000 });
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

describe("the way to an endpoint", () => {
  const coded = (code: unknown, more: object = {}): Error =>
    Object.assign(new Error("x"), { code }, more);
  const fetched = (cause: unknown, message = "fetch failed"): Error =>
    new TypeError(message, { cause });
  const deep = (inner: unknown): Error =>
    new Error("a", {
      cause: new Error("b", { cause: new Error("c", { cause: new Error("d", { cause: inner }) }) }),
    });

  test.each([
    ["a fetch without a code", fetched(new Error("other side closed")), "infrastructure"],
    ["a body that breaks off", fetched(new Error("x"), "terminated"), "infrastructure"],
    ["a parser's error", fetched(coded("HPE_INVALID_CONSTANT")), "infrastructure"],
    ["a parser's error by itself", coded("HPE_INVALID_CHUNK_SIZE"), "infrastructure"],
    ["bad compression", fetched(coded("Z_DATA_ERROR"), "terminated"), "infrastructure"],
    ["no address left", coded("EADDRNOTAVAIL", { syscall: "connect" }), "infrastructure"],
    ["no network", coded("ENETDOWN"), "infrastructure"],
    ["no descriptor for a socket", coded("EMFILE", { syscall: "connect" }), "infrastructure"],
    ["a firewall", coded("EACCES", { syscall: "connect", address: "::1" }), "infrastructure"],
    [
      "a unix socket that is not there",
      coded("ENOENT", { syscall: "connect", address: "/run/x", path: "/run/x" }),
      "infrastructure",
    ],
    ["a name server", coded("EAI_FAIL", { syscall: "getaddrinfo" }), "infrastructure"],
    ["a stream of HTTP/2", coded("ERR_HTTP2_STREAM_ERROR"), "infrastructure"],
    ["a session of HTTP/2", coded("ERR_HTTP2_SESSION_ERROR"), "infrastructure"],
    ["a session that goes away", coded("ERR_HTTP2_GOAWAY_SESSION"), "infrastructure"],
    ["gRPC 14", coded(14, { details: "no connection", metadata: {} }), "infrastructure"],
    ["gRPC 8", coded(8, { details: "quota" }), "rate-limit"],
    ["gRPC 4", coded(4, { details: "late" }), "timeout"],
    ["gRPC 3", coded(3, { details: "wrong" }), "data"],
    ["five levels down", deep(coded("ECONNRESET")), "infrastructure"],
    [
      "one of several",
      new AggregateError([new Error("x"), fetched(coded("ECONNREFUSED"))]),
      "infrastructure",
    ],
    [
      "several addresses that were late",
      fetched(Object.assign(new AggregateError([coded("ETIMEDOUT")]), { code: "ETIMEDOUT" })),
      "timeout",
    ],
    ["a Response", new Response("", { status: 503 }), "infrastructure"],
    [
      "a Response with a time",
      new Response("", { status: 429, headers: { "retry-after": "2" } }),
      "rate-limit",
    ],
    ["{ status }", { status: 502 }, "infrastructure"],
    ["{ status: 400 }", { status: 400 }, "data"],
    [
      "AWS",
      Object.assign(new Error("x"), { $metadata: { httpStatusCode: 503 } }),
      "infrastructure",
    ],
    ["409", Object.assign(new Error("x"), { status: 409 }), "infrastructure"],
    ["425", Object.assign(new Error("x"), { status: 425 }), "data"],
    [
      "403 with a time",
      Object.assign(new Error("x"), { status: 403, headers: { "retry-after": "1" } }),
      "data",
    ],
    [
      "400 that should be sent again",
      Object.assign(new Error("x"), { status: 400, headers: { "x-should-retry": "true" } }),
      "infrastructure",
    ],
    [
      "500 that should not",
      Object.assign(new Error("x"), { status: 500, headers: { "x-should-retry": "false" } }),
      "data",
    ],
    ["a certificate", fetched(coded("SELF_SIGNED_CERT_IN_CHAIN")), "user-code"],
    ["another", fetched(coded("UNABLE_TO_VERIFY_LEAF_SIGNATURE")), "user-code"],
    ["another name", fetched(coded("ERR_TLS_CERT_ALTNAME_INVALID")), "user-code"],
    ["a certificate that is over", coded("CERT_HAS_EXPIRED"), "user-code"],
    ["redirects without end", fetched(new Error("redirect count exceeded")), "user-code"],
    ["redirects of axios", coded("ERR_FR_TOO_MANY_REDIRECTS"), "user-code"],
    [
      "redirects of the AI SDK",
      Object.assign(new Error("x", { cause: new Error("redirect count exceeded") }), {
        isRetryable: true,
      }),
      "user-code",
    ],
    [
      "what the AI SDK could not reach",
      Object.assign(new Error("x", { cause: new Error("odd") }), { isRetryable: true }),
      "infrastructure",
    ],
    ["a scheme", fetched(new Error("unknown scheme")), "user-code"],
    ["no URL", fetched(coded("ERR_INVALID_URL"), "Failed to parse URL from x"), "user-code"],
    ["a file", coded("ENOENT", { syscall: "open", path: "/x" }), "user-code"],
    ["too many files", coded("EMFILE", { syscall: "open", path: "/x" }), "user-code"],
    ["a text of its own", fetched(new Error("x"), "terminated early"), "user-code"],
    ["what it decompresses itself", coded("Z_DATA_ERROR"), "user-code"],
    ["a code of its own", coded("NOPE"), "user-code"],
    ["a number of its own", coded(14), "user-code"],
    ["a circle", Object.assign(deep(undefined), { cause: nameless }), "user-code"],
    ["undefined", undefined, "user-code"],
  ])("%s", (_, thrown, wanted) => {
    const failure = failureOf(thrown);
    expect([failure.code, classOf(failure)]).toEqual(["SCORE_THREW", wanted]);
    // As data it says the same, and can travel.
    expect(classOf(JSON.parse(JSON.stringify(failure)) as typeof failure)).toBe(wanted);
  });

  test("an error within itself has an end", () => {
    const error = new Error("x");
    error.cause = Object.assign(new AggregateError([error]), { lastError: error });
    expect(classOf(failureOf(error))).toBe("user-code");
  });

  test.each([
    ["2", 2000],
    ["2s", 2000],
    ["1m30s", 90_000],
    ["500ms", 500],
    ["0.5", 500],
    ["2, 5", 5000],
    ["5s,2s", 5000],
    ["Tue, 14 Nov 2023 22:13:30 GMT", 10_000],
    ["Tue, 14 Nov 2023 22:13:30 GMT, 3", 10_000],
    ["soon", undefined],
    ["", undefined],
    ["-1", undefined],
  ])("a retry-after of %j", (text, retryAfterMs) => {
    const headers = new Headers();
    headers.set("retry-after", text);
    const found = httpDetailsOf({ status: 503, headers }, 1_700_000_000_000);
    expect(found.retryAfterMs).toBe(retryAfterMs);
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

  test("waits for no endpoint that wants to be left alone for longer than is allowed", () => {
    const policy = new RetryPolicy({ baseMs: 0 });
    expect(policy.delayMs(1, "rate-limit", 120_000)).toBe(120_000);
    expect(policy.delayMs(1, "rate-limit", 120_001)).toBeUndefined();
    const patient = new RetryPolicy({ baseMs: 0, maxRetryAfterMs: 1e6 });
    expect(patient.delayMs(1, "rate-limit", 1e6)).toBe(1e6);
    expect(patient.delayMs(1, "rate-limit", 1e6 + 1)).toBeUndefined();
  });

  test("never pauses for longer than a timer can", () => {
    const policy = new RetryPolicy({ baseMs: 1e12, maxMs: 1e12 }, () => 1);
    expect(policy.delayMs(1, "timeout")).toBe(2 ** 31 - 1);
  });

  /** How many of so many that are due have had their turn, as it goes. */
  function lineOf(policy: RetryPolicy, count: number): () => number {
    let turns = 0;
    for (let n = 0; n < count; n++) void policy.turn().then(() => (turns += 1));
    return () => turns;
  }

  test("has a budget: a share of the first tries, and ten to begin with; the others wait", async () => {
    const clock = new VirtualClock();
    const policy = new RetryPolicy({ baseMs: 100, budget: 0.25 }, undefined, clock);
    for (let n = 0; n < 16; n++) policy.began();
    expect(policy.isUsedUp).toBe(false);
    const turns = lineOf(policy, 100);
    await turn();
    expect(turns()).toBe(14);
    expect(policy.isUsedUp).toBe(true);
    for (let n = 0; n < 4; n++) policy.began();
    await turn();
    expect(turns()).toBe(15);
    // Each that succeeds lets two more go.
    policy.succeeded();
    await turn();
    expect(turns()).toBe(17);
    // And one goes in any case, as often as the first pause is long.
    await clock.advanceTo(1000);
    await turn();
    expect(turns()).toBe(27);
    await clock.advanceTo(100_000);
    await turn();
    expect(turns()).toBe(100);
    // What was not needed is saved, and not without end.
    for (let n = 0; n < 10_000; n++) policy.began();
    const burst = lineOf(policy, 200);
    await turn();
    expect(burst()).toBe(100);
    const free = lineOf(new RetryPolicy({ budget: Infinity }, undefined, clock), 1000);
    await turn();
    expect(free()).toBe(1000);
  });

  test("takes nobody's turn who has gone away, and lets nobody wait for one", async () => {
    const clock = new VirtualClock();
    const policy = new RetryPolicy({ budget: 0, baseMs: 10 }, undefined, clock);
    lineOf(policy, 10);
    const gone = new AbortController();
    const reason = new Error("the time is over");
    const leaving = policy.turn(gone.signal);
    const turns = lineOf(policy, 1);
    gone.abort(reason);
    await expect(leaving).rejects.toBe(reason);
    await expect(policy.turn(gone.signal)).rejects.toBe(reason);
    await clock.advanceTo(10);
    await turn();
    expect(turns()).toBe(1);
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

  test("opens at its very share, which is not rounded", () => {
    const breaker = new CircuitBreaker({ window: 100, threshold: 0.07 });
    answering(breaker, 93, true);
    answering(breaker, 6, false);
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

describe("a quantile of the last latencies", () => {
  test("when enough are known", () => {
    const quantile = new LatencyQuantile(0.9);
    for (let n = 0; n < 50; n++) quantile.add(n, 0);
    expect(quantile.value(0)).toBeUndefined();
    for (let n = 50; n < 100; n++) quantile.add(n, 0);
    expect(quantile.value(0)).toBe(89);
    // Those of before are forgotten.
    for (let n = 0; n < 600; n++) quantile.add(1000, 0);
    expect(quantile.value(0)).toBe(1000);
  });

  test("is that of all calls, though the long ones are given up", () => {
    const quantile = new LatencyQuantile(0.9);
    // 1 to 200 ms. Half of what takes more than 150 is given up after 160: a tenth takes more than 180, a tenth of those that were answered more than 158.
    for (let ms = 1; ms <= 200; ms++) {
      if (ms > 160 && ms % 2 === 0) quantile.addAtLeast(160, 0);
      else quantile.add(ms, 0);
    }
    expect(quantile.value(0)).toBe(179);
  });

  test("is that of all calls, though only the quick ones have been answered", () => {
    const quantile = new LatencyQuantile(0.5);
    for (let ms = 1; ms <= 60; ms++) quantile.add(ms, 0);
    expect(quantile.value(0, 40, () => Array.from({ length: 40 }, (_, n) => 60 + n))).toBe(50);
  });

  test("is twice what the longest took while too many of those under way may take as long", () => {
    const quantile = new LatencyQuantile(0.9);
    for (let ms = 1; ms <= 60; ms++) quantile.add(ms, 0);
    expect(quantile.value(0, 40, () => Array.from({ length: 40 }, (_, n) => 60 + n))).toBe(120);
  });

  test("is that of the answered ones where more than their share is given up", () => {
    const quantile = new LatencyQuantile(0.9);
    for (let ms = 1; ms <= 100; ms++) {
      quantile.add(ms, 0);
      if (ms % 4 === 0) quantile.addAtLeast(1000, 0);
    }
    expect(quantile.value(0)).toBe(90);
  });

  test("stays when all that is remembered was given up", () => {
    const quantile = new LatencyQuantile(0.9);
    for (let ms = 1; ms <= 100; ms++) quantile.add(ms, 0);
    expect(quantile.value(0)).toBe(90);
    for (let n = 0; n < 600; n++) quantile.addAtLeast(50, 0);
    expect(quantile.value(0)).toBe(90);
  });

  test.each([16, 256, 2000])("is that of all calls while %i are under way", (underWay) => {
    const quantile = new LatencyQuantile(0.95);
    let state = 7;
    /** Exponential, 2 s on average: 5 % take longer than 5,991 ms. */
    const next = (): number => {
      state = (Math.imul(state, 1_664_525) + 1_013_904_223) >>> 0;
      return -2000 * Math.log((state + 0.5) / 2 ** 32);
    };
    const calls = Array.from({ length: underWay }, () => ({ fromMs: 0, toMs: next() }));
    const values: number[] = [];
    for (let n = 0; n < 12 * Math.max(underWay, 1000); n++) {
      const first = calls.reduce((one, other) => (other.toMs < one.toMs ? other : one));
      const nowMs = first.toMs;
      quantile.add(nowMs - first.fromMs, nowMs);
      Object.assign(first, { fromMs: nowMs, toMs: nowMs + next() });
      if (n % 1000 !== 999) continue;
      const agesMs = (): number[] => calls.map(({ fromMs }) => nowMs - fromMs);
      values.push(quantile.value(nowMs, underWay, agesMs) ?? Number.NaN);
    }
    const later = values.slice(4).toSorted((one, other) => one - other);
    const median = later[later.length >> 1] as number;
    expect(median).toBeGreaterThan(0.85 * 5991);
    expect(median).toBeLessThan(1.15 * 5991);
  });
});

describe("a second call", () => {
  /** Of a call that is at work from now on. */
  function ageOn(clock: VirtualClock): () => number {
    const fromMs = clock.now();
    return () => clock.now() - fromMs;
  }

  /** One that knows calls of 1 to 100 ms, at 100 ms: the median is 50. */
  async function taught(clock: VirtualClock, budget: number): Promise<HedgePolicy> {
    const hedge = new HedgePolicy({ quantile: 0.5, budget }, clock);
    for (let ms = 1; ms <= 100; ms++) {
      const call = hedge.sent(ageOn(clock));
      clock.after(ms, () => call.answered(ms));
    }
    await clock.advanceTo(100);
    return hedge;
  }

  test("goes out when the first takes longer than most did, and not of one that is over", async () => {
    const clock = new VirtualClock();
    const hedge = await taught(clock, 1);
    const late: string[] = [];
    const a = hedge.sent(ageOn(clock), () => late.push(`a at ${clock.now()}`));
    hedge.sent(ageOn(clock), () => late.push(`b at ${clock.now()}`));
    await clock.advanceTo(140);
    a.answered(40);
    await clock.advanceTo(149);
    expect(late).toEqual([]);
    await clock.advanceTo(1000);
    expect(late).toEqual(["b at 150"]);
  });

  test("counts from when the first is at work, whichever was sent before", async () => {
    const clock = new VirtualClock();
    const hedge = await taught(clock, 1);
    const late: string[] = [];
    let age = (): number | undefined => undefined;
    hedge.sent(
      () => age(),
      () => late.push(`a at ${clock.now()}`),
    );
    hedge.sent(ageOn(clock), () => late.push(`b at ${clock.now()}`));
    await clock.advanceTo(180);
    age = ageOn(clock);
    await clock.advanceTo(1000);
    expect(late).toEqual(["b at 150", "a at 230"]);
  });

  test("of calls that went out before it was known how long most take goes out when it is", async () => {
    const clock = new VirtualClock();
    const hedge = new HedgePolicy({ quantile: 0.5, budget: 1 }, clock);
    const late: number[] = [];
    const calls = Array.from({ length: 110 }, (_, n) =>
      hedge.sent(ageOn(clock), () => late.push(n)),
    );
    for (const [n, call] of calls.slice(0, 60).entries()) {
      clock.after(n + 1, () => call.answered(n + 1));
    }
    await clock.advanceTo(54);
    expect(late).toEqual([]);
    // Half of all have answered after 55 ms, and it is worked out at times.
    await clock.advanceTo(60);
    expect(late).toEqual(Array.from({ length: 50 }, (_, n) => 60 + n));
  });

  test("is looked for when one may be due, and not whenever a call is sent or answered", async () => {
    const clock = new VirtualClock();
    const hedge = await taught(clock, 1);
    let looks = 0;
    const late: string[] = [];
    const counted = (): (() => number) => {
      const age = ageOn(clock);
      return () => {
        looks += 1;
        return age();
      };
    };
    hedge.sent(counted(), () => late.push(`first at ${clock.now()}`));
    const before = looks;
    for (let n = 0; n < 50; n++) hedge.sent(counted(), () => undefined).answered(50);
    // At times for the quantile, in which pending calls count.
    expect(looks - before).toBeLessThan(10);
    // Most now take 20 ms: the first is due earlier than it was thought to be.
    for (let n = 0; n < 400; n++) hedge.sent(counted(), () => undefined).answered(20);
    await clock.advanceTo(119);
    expect(late).toEqual([]);
    await clock.advanceTo(120);
    expect(late).toEqual(["first at 120"]);
  });

  test("waits in line for the budget, the oldest first, and a budget is a share of the first calls", async () => {
    const clock = new VirtualClock();
    const hedge = await taught(clock, 1 / 8);
    const late: number[] = [];
    for (let n = 0; n < 1000; n++) hedge.sent(ageOn(clock), () => late.push(n));
    await clock.advanceTo(1000);
    // What was saved: an eighth of those under way.
    expect(late).toHaveLength(125);
    for (let n = 1000; n < 1100; n++) hedge.sent(ageOn(clock), () => late.push(n)).failed();
    expect(late).toEqual(Array.from({ length: 137 }, (_, n) => n));
  });
});
