/**
 * Values of one kind, metrics or settings, as the report of one request. Values of several steps go
 * in one request where MLflow takes so many.
 */

import type { Report } from "../delivery.ts";
import type { KeyValue } from "./mlflow-values.ts";

/** A kind of values: its name, its limit and its request. */
export interface ValueKind<Value extends KeyValue> {
  /** Word for one, for a warning where it is refused. */
  readonly what: string;
  /** MLflow's limit for one request. */
  readonly limit: number;
  /** Rejects with RefusedReport where another attempt would fail too. */
  readonly send: (values: readonly Value[], signal: AbortSignal) => Promise<void>;
}

/** Returns the reports of values, as few as the limit of their kind allows. */
export function valuesReports<Value extends KeyValue>(
  kind: ValueKind<Value>,
  values: readonly Value[],
): readonly Report[] {
  return chunks(values, kind.limit).map((some) => new ValuesReport(kind, some));
}

/**
 * The server refuses all values of a request for one of them: they are sent again in halves, so
 * that only that one is lost.
 */
class ValuesReport<Value extends KeyValue> implements Report {
  readonly #kind: ValueKind<Value>;
  readonly #sent: readonly Value[];
  /** Whether it is a part of what was refused: together with the other part it would be again. */
  readonly #isPart: boolean;

  constructor(kind: ValueKind<Value>, sent: readonly Value[], isPart = false) {
    this.#kind = kind;
    this.#sent = sent;
    this.#isPart = isPart;
  }

  get values(): number {
    return this.#sent.length;
  }

  get what(): string | undefined {
    const [first, ...others] = this.#sent;
    return others.length > 0 ? undefined : `the ${this.#kind.what} ${JSON.stringify(first?.name)}`;
  }

  send(signal: AbortSignal): Promise<void> {
    return this.#kind.send(this.#sent, signal);
  }

  parts(): readonly Report[] {
    const { length } = this.#sent;
    if (length < 2) return [];
    const halves = chunks(this.#sent, Math.ceil(length / 2));
    return halves.map((half) => new ValuesReport(this.#kind, half, true));
  }

  joined(next: Report): Report | undefined {
    if (!(next instanceof ValuesReport) || next.#kind !== this.#kind) return undefined;
    if (this.#isPart || next.#isPart) return undefined;
    if (this.values + next.values > this.#kind.limit) return undefined;
    return new ValuesReport(this.#kind, [...this.#sent, ...next.#sent]);
  }
}

function chunks<Item>(items: readonly Item[], size: number): Item[][] {
  const count = Math.ceil(items.length / size);
  return Array.from({ length: count }, (_, index) => items.slice(index * size, (index + 1) * size));
}
