/**
 * Traces of calls, by the OpenTelemetry API that the user provides: spans of calls and of their
 * executions, and the context that travels from one to the other.
 *
 * Nothing here imports OpenTelemetry: its API comes from the user, for each thread. Without it a
 * call costs one look at the slot.
 */
import { threadSlot } from "../shared/thread-slot.ts";

/** A value of OpenTelemetry that is only passed on. */
export type TraceContext = object;

/** A span, as far as calls use it. */
export interface TraceSpan {
  /** Sets one attribute. */
  setAttribute(key: string, value: string | number | string[]): unknown;
  /** Sets the status; 2 is an error. */
  setStatus(status: { code: number; message?: string }): unknown;
  /** Ends the span, at that time or now. */
  end(endTime?: number): void;
}

/** Options of a span, as far as they are used. */
export interface TraceSpanOptions {
  /** 0: internal, 1: server, 2: client. */
  kind?: number;
  /** Facts of what the span stands for. */
  attributes?: Record<string, string | number>;
  /** When it began, in ms since 1970. Default: now. */
  startTime?: number;
}

/** Makes spans. */
export interface Tracer {
  /** Begins a span; its parent is the span of the context. */
  startSpan(name: string, options?: TraceSpanOptions, context?: TraceContext): TraceSpan;
}

/** The part of the module `@opentelemetry/api` that is used: the module itself fits. */
export interface TracingApi {
  /** Tracers, and spans in contexts. */
  readonly trace: {
    getTracer(name: string): Tracer;
    setSpan(context: TraceContext, span: TraceSpan): TraceContext;
  };
  /** The context of the running code. */
  readonly context: {
    active(): TraceContext;
    with<T>(context: TraceContext, work: () => T): T;
  };
  /** Contexts as texts that travel. */
  readonly propagation: {
    inject(context: TraceContext, carrier: Record<string, string>): void;
    extract(context: TraceContext, carrier: Readonly<Record<string, string>>): TraceContext;
  };
}

/** The API that a thread has, and its tracer for calls. */
export interface Tracing {
  /** The module `@opentelemetry/api`. */
  readonly api: TracingApi;
  /** The tracer "rayling". */
  readonly tracer: Tracer;
}

/** A thread's tracing, if its user has provided it. */
export const tracingSlot: { current: Tracing | undefined } = threadSlot("tracing", () => ({
  current: undefined,
}));

/** Kinds of spans, as OpenTelemetry numbers them. */
export const spanKinds = { internal: 0, server: 1, client: 2 } as const;

/** Marks a span as failed. */
export function failSpan(span: TraceSpan, name: string, message: string): void {
  const error = 2;
  span.setAttribute("error.type", name);
  span.setStatus({ code: error, message });
}
