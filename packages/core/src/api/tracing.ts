/** Spans of calls, for users with OpenTelemetry. */
import { type Tracing, type TracingApi, tracingSlot } from "../telemetry/tracing.ts";
import { InvalidOptionError } from "../shared/errors.ts";

/**
 * Makes spans of calls and tasks in this thread, and lets their context travel with the calls.
 *
 * Call it in the driver, and in the module of an actor or a task, which each host imports: a thread
 * without it makes no spans. Undefined turns it off.
 *
 * @param api the module `@opentelemetry/api`
 * @throws InvalidOptionError for anything else
 */
export function provideTracing(api: TracingApi | undefined): void {
  if (api === undefined) {
    tracingSlot.current = undefined;
    return;
  }
  const isWhole =
    typeof api?.trace?.getTracer === "function" &&
    typeof api.context?.with === "function" &&
    typeof api.propagation?.inject === "function";
  if (!isWhole) {
    const problem =
      "provideTracing takes the module @opentelemetry/api: it has no trace, context and propagation";
    throw new InvalidOptionError("api", problem);
  }
  tracingSlot.current = { api, tracer: api.trace.getTracer("rayling") };
}

/** Returns what `provideTracing` was given in this thread, for spans beside those of calls. */
export function currentTracing(): Tracing | undefined {
  return tracingSlot.current;
}
