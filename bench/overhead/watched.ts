/**
 * What is called while somebody watches, and nothing else: hosts import this file. Where
 * `RAYLING_BENCH_SPANS` is set each thread has the SDK of OpenTelemetry, whose spans are made and
 * put in batches, and are sent nowhere.
 *
 * `RAYLING_BENCH_CHECKOUT` is the folder of another checkout whose core is measured.
 */
import { pathToFileURL } from "node:url";
import type * as Core from "@rayling/core";

const checkout = process.env["RAYLING_BENCH_CHECKOUT"];

export const ray: typeof Core =
  checkout === undefined
    ? await import("@rayling/core")
    : ((await import(pathToFileURL(`${checkout}/packages/core/src/index.ts`).href)) as typeof Core);

if (process.env["RAYLING_BENCH_SPANS"] !== undefined) {
  const otel = await import("@opentelemetry/api");
  const { BatchSpanProcessor, NodeTracerProvider } = await import("@opentelemetry/sdk-trace-node");
  const nowhere = {
    export: (_: unknown, done: (result: { code: number }) => void): void => done({ code: 0 }),
    shutdown: async (): Promise<void> => undefined,
  };
  new NodeTracerProvider({ spanProcessors: [new BatchSpanProcessor(nowhere)] }).register();
  ray.provideTracing(otel);
}

class AdderInstance {
  add(a: number, b: number): number {
    return a + b;
  }
}
export const Adder: Core.ActorClass<typeof AdderInstance> = ray.remote(AdderInstance);

/** A reward that costs nothing itself. */
export function one(): number {
  return 1;
}
