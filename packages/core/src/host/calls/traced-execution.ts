/**
 * The span of a call where it runs. Its parent is the span of the caller, which has travelled
 * beside the arguments; code of the call has it as the active span.
 */
import {
  failSpan,
  spanKinds,
  type TraceContext,
  type TraceSpan,
  type Tracing,
  tracingSlot,
} from "../../telemetry/tracing.ts";
import type { Codec } from "../../protocol/codec.ts";
import type { CallMessage } from "../../protocol/message.ts";
import { asError } from "../../shared/errors/thrown.ts";

export class TracedExecution {
  readonly #tracing: Tracing;
  readonly #span: TraceSpan;
  readonly #context: TraceContext;

  constructor(tracing: Tracing, span: TraceSpan, context: TraceContext) {
    this.#tracing = tracing;
    this.#span = span;
    this.#context = context;
  }

  /** Runs code of the call. */
  run<T>(work: () => T): T {
    return this.#tracing.api.context.with(this.#context, work);
  }

  failed(error: unknown): void {
    const { name, message } = asError(error);
    failSpan(this.#span, name, message);
  }

  end(): void {
    this.#span.end();
  }
}

/** Begins the span of a call, if one came with it and this thread has tracing. */
export function beginTraced(
  { dependencies }: CallMessage,
  codec: Codec,
  { name, actorId }: { readonly name: string; readonly actorId: string | undefined },
): TracedExecution | undefined {
  const tracing = tracingSlot.current;
  const travelled = dependencies.at(-1);
  if (tracing === undefined || travelled?.isTrace !== true) return undefined;
  const { api, tracer } = tracing;
  const carrier = codec.decode(travelled);
  if (!isCarrier(carrier)) return undefined;
  const parent = api.propagation.extract(api.context.active(), carrier);
  const attributes = {
    "rpc.system": "rayling",
    "rpc.method": name,
    ...(actorId === undefined ? {} : { "rayling.actor.id": actorId }),
  };
  const span = tracer.startSpan(name, { kind: spanKinds.server, attributes }, parent);
  return new TracedExecution(tracing, span, api.trace.setSpan(parent, span));
}

function isCarrier(value: unknown): value is Readonly<Record<string, string>> {
  if (typeof value !== "object" || value === null) return false;
  return Object.values(value).every((one) => typeof one === "string");
}
