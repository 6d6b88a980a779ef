/** Spans of calls with the SDK of OpenTelemetry, received by OTLP: across threads and processes. */

import * as otel from "@opentelemetry/api";
import { afterAll, beforeAll, expect, test } from "vitest";
import * as ray from "@rayling/core";
import {
  type OtlpReceiver,
  otlpReceiver,
  pathsOf,
  type ReceivedSpan,
} from "../fixtures/otlp-receiver.ts";
import type * as Traced from "../fixtures/traced.ts";

let receiver: OtlpReceiver;
let traced: typeof Traced;
let inner: ray.ActorHandle<Traced.Inner>;
let outer: ray.ActorHandle<Traced.Outer>;

beforeAll(async () => {
  receiver = await otlpReceiver();
  process.env["RAYLING_TEST_OTLP"] = receiver.url;
  traced = await import("../fixtures/traced.ts");
  await ray.init({ prewarm: 0 });
  inner = traced.RemoteInner.remote();
  outer = traced.RemoteOuter.remote();
});

afterAll(async () => {
  await ray.shutdown();
  await traced.provider?.shutdown();
  await receiver.close();
});

/** Runs `work` within a span of the driver; resolves to the spans of its trace, which are so many. */
async function spansOf(count: number, work: () => Promise<unknown>): Promise<ReceivedSpan[]> {
  const traceId = await otel.trace.getTracer("driver").startActiveSpan("request", async (span) => {
    await work().finally(() => span.end());
    return span.spanContext().traceId;
  });
  const own = (): ReceivedSpan[] => receiver.spans.filter((span) => span.traceId === traceId);
  await expect.poll(() => own().length).toBe(count);
  return own();
}

test("spans of driver, actors and tasks have their parents across threads and processes", async () => {
  const spans = await spansOf(9, async () => {
    expect(await ray.get(outer.ask.remote(inner, "why"))).toBe("why! 6");
  });
  const ask = "request > Outer.ask (client) > Outer.ask (server)";
  expect(pathsOf(spans)).toEqual(
    [
      "request",
      "request > Outer.ask (client)",
      ask,
      `${ask} > Inner.answer (client)`,
      `${ask} > Inner.answer (client) > Inner.answer (server)`,
      `${ask} > Inner.answer (client) > Inner.answer (server) > think`,
      `${ask} > double (client)`,
      `${ask} > double (client) > double (server)`,
      `${ask} > double (client) > double (server) > multiply`,
    ].toSorted(),
  );
});

test("a call that fails has its error on both sides", async () => {
  const spans = await spansOf(4, async () => {
    await expect(ray.get(inner.answer.remote("?"))).rejects.toThrow("no question");
  });
  const calls = spans.filter(({ name }) => name === "Inner.answer");
  expect(calls.map(({ status: { code, message } }) => [code, message])).toEqual([
    [2, "no question"],
    [2, expect.stringContaining("no question")],
  ]);
});

test("a stream and a method that is over when it returns run within their spans", async () => {
  const letters: unknown[] = [];
  const spans = await spansOf(7, async () => {
    const stream = inner.letters.options({ numReturns: "streaming" }).remote("ab");
    for await (const item of stream) letters.push(await ray.get(item));
    const length = inner.length.remote("four");
    expect(await ray.get(length)).toBe(4);
  });
  expect(letters).toEqual(["a", "b"]);
  const paths = pathsOf(spans);
  const call = "request > Inner.letters (client) > Inner.letters (server)";
  expect(paths).toContain(`${call} > letter a`);
  expect(paths).toContain(`${call} > letter b`);
  expect(paths).toContain("request > Inner.length (client) > Inner.length (server)");
});

test("signals, references and a context travel beside the arguments of one call", async () => {
  const abort = new AbortController();
  const question = ray.put("how");
  await spansOf(4, async () => {
    const answer = inner.answer.remote(question, abort.signal);
    expect(await ray.get(answer)).toBe("how!");
    abort.abort();
  });
});

test("turned off, nothing is made and nothing travels", async () => {
  ray.provideTracing(undefined);
  try {
    await spansOf(1, async () => {
      expect(await ray.get(inner.traceId.remote())).toBeUndefined();
    });
  } finally {
    ray.provideTracing(otel);
  }
  expect(await ray.get(inner.traceId.remote())).toMatch(/^[0-9a-f]{32}$/);
});

test("anything but the API of OpenTelemetry is refused", () => {
  expect(() => ray.provideTracing({} as never)).toThrow(/takes the module @opentelemetry\/api/);
});
