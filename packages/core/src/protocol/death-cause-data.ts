/**
 * A death cause as plain data, for channels that do not carry error classes.
 */
import type { DeathCause } from "../shared/errors.ts";
import { type FailureData, type FindClass, fromFailure, toFailure } from "./failure.ts";

export interface CauseData {
  readonly kind: DeathCause["kind"];
  readonly message: string;
  readonly exitCode?: number;
  readonly signal?: string;
  readonly stderr?: readonly string[];
  readonly failure?: FailureData;
}

export function causeToData(cause: DeathCause): CauseData {
  const { error, ...rest } = cause;
  return error === undefined
    ? rest
    : { ...rest, failure: toFailure(error, { encodable: isPrimitive }) };
}

export function causeFromData(data: CauseData, findClass?: FindClass): DeathCause {
  const { failure, ...rest } = data;
  return failure === undefined ? rest : { ...rest, error: fromFailure(failure, findClass) };
}

function isPrimitive(value: unknown): boolean {
  return (
    value === null ||
    (typeof value !== "object" && typeof value !== "function" && typeof value !== "symbol")
  );
}
