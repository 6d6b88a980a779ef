/**
 * A call with its span at the caller, from `.remote()` to the answer. The context of the span
 * travels beside the arguments, each time that the call is sent.
 */
import { failSpan, spanKinds, type TraceSpan, type Tracing } from "../../telemetry/tracing.ts";
import type { Codec, Encoded } from "../../protocol/codec.ts";
import type { ObjectEntry } from "../../store/object-entry.ts";
import { AnyArguments, type CallArguments, type Companions } from "./call-arguments.ts";

/** A call that is about to be made. */
interface Traced {
  readonly tracing: Tracing;
  readonly codec: Codec;
  readonly args: CallArguments;
  readonly entry: ObjectEntry;
}

/** Begins a span; returns the arguments with its context beside them. */
export function tracedArguments({ tracing, codec, args, entry }: Traced): CallArguments {
  const { api, tracer } = tracing;
  const attributes = { "rpc.system": "rayling", "rpc.method": entry.label };
  const parent = api.context.active();
  const span = tracer.startSpan(entry.label, { kind: spanKinds.client, attributes }, parent);
  const carrier: Record<string, string> = {};
  api.propagation.inject(api.trace.setSpan(parent, span), carrier);
  const context = { ...codec.encode(carrier, "trace context"), isTrace: true };
  const signals = new TracedCall(span, context, entry, args.signals);
  return new AnyArguments(args.values, args.dependencies, signals);
}

class TracedCall implements Companions {
  readonly #span: TraceSpan;
  readonly #context: Encoded;
  readonly #entry: ObjectEntry;
  readonly #signals: Companions | undefined;

  constructor(span: TraceSpan, context: Encoded, entry: ObjectEntry, signals?: Companions) {
    this.#span = span;
    this.#context = context;
    this.#entry = entry;
    this.#signals = signals;
  }

  /** The context is the last: slots of signals are by their place. */
  states(): Encoded[] {
    return [...(this.#signals?.states() ?? []), this.#context];
  }

  listen(tell: (index: number, reason: Encoded) => void): void {
    this.#signals?.listen(tell);
  }

  end(): void {
    this.#signals?.end();
    const { failed } = this.#entry;
    if (failed !== undefined) failSpan(this.#span, failed.name, failed.message);
    this.#span.end();
  }
}
