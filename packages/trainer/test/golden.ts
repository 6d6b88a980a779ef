/** Cases of a file of verl's own numbers (test/fixtures/golden.ts), through adapters to ours: what counts as equal. */
import { type Nested, type Tensor, tensor, zeros } from "@rayling/data-proto";
import { TrainerInputError } from "@rayling/trainer";
import { describe, expect, test } from "vitest";

export interface GoldenCase {
  readonly name: string;
  readonly fn: string;
  readonly inputs: Readonly<Record<string, unknown>>;
  readonly params: Readonly<Record<string, unknown>>;
  readonly expected: Readonly<Record<string, unknown>>;
  /** Absolute, on top: nested like `expected`. */
  readonly tol?: Readonly<Record<string, unknown>>;
}

/** What ours gives where verl's function gives `expected`, by the same keys. */
export type Adapter = (golden: GoldenCase) => Readonly<Record<string, unknown>>;

/**
 * Every case of a file through the adapter of its fn: a fn without an adapter fails. Where verl raised, ours must refuse its input, too.
 * @param differs names of cases where ours means to do otherwise, and why
 * @param rounding what to allow an fn on top, absolute, where verl's float32 cancels and its cases do not say so
 */
export function checkGolden(
  file: unknown,
  adapters: Readonly<Record<string, Adapter>>,
  differs: Readonly<Record<string, string>> = {},
  rounding: Readonly<Record<string, number>> = {},
): void {
  const { cases } = file as { readonly cases: readonly GoldenCase[] };
  test("every fn of the file has an adapter", () => {
    const fns = new Set(cases.map(({ fn }) => fn));
    expect([...fns].filter((fn) => !Object.hasOwn(adapters, fn))).toEqual([]);
    expect(fns.size).toBeGreaterThan(0);
  });
  for (const [fn, adapter] of Object.entries(adapters)) {
    const own = cases.filter((golden) => golden.fn === fn && differs[golden.name] === undefined);
    if (own.length === 0) continue;
    describe(fn, () => {
      test.each(own)("$name", (golden) => {
        if (golden.expected["error"] === undefined)
          expectClose(golden, adapter(golden), rounding[fn]);
        else expect(() => adapter(golden)).toThrow(TrainerInputError);
      });
    });
  }
}

/** A real array was float32; of rows that are none, a matrix of none. */
export function tensorAt({ inputs }: GoldenCase, name: string): Tensor {
  const value = inputs[name];
  if (Array.isArray(value) && value.length === 0) return zeros([0, 0], "float32");
  return tensor(nestedOf(value), "float32");
}

/** Numbers and tensors within 1e-6 + 1e-5 of what is expected, and what the case allows; NaN is null, infinities are texts. */
export function expectClose(
  { name, expected, tol }: GoldenCase,
  got: Readonly<Record<string, unknown>>,
  rounding?: number,
): void {
  expect(Object.keys(got).toSorted()).toEqual(Object.keys(expected).toSorted());
  for (const [key, wanted] of Object.entries(expected)) {
    const allowed = tol?.[key] ?? rounding;
    compare(`${name}: ${key}`, got[key], wanted, allowed);
  }
}

function compare(where: string, got: unknown, wanted: unknown, allowed: unknown): void {
  if (isRecord(got) && isRecord(wanted) && !("data" in got)) {
    expect(Object.keys(got).toSorted(), where).toEqual(Object.keys(wanted).toSorted());
    for (const [key, one] of Object.entries(wanted)) {
      compare(`${where}.${key}`, got[key], one, isRecord(allowed) ? allowed[key] : allowed);
    }
    return;
  }
  if (typeof got === "string" || typeof got === "boolean" || got === null) {
    expect(got, where).toBe(wanted);
    return;
  }
  if (Array.isArray(got) && typeof got[0] === "string") {
    expect(got, where).toEqual(wanted);
    return;
  }
  const values = numbersOf(got);
  const targets = numbersOf(wanted);
  const extra = typeof allowed === "number" ? allowed : 0;
  expect(values.length, where).toBe(targets.length);
  for (const [at, target] of targets.entries()) {
    const value = values[at] as number;
    const isSame = Object.is(value + 0, target + 0);
    const isClose = Math.abs(value - target) <= 1e-6 + 1e-5 * Math.abs(target) + extra;
    if (!isSame && !isClose) expect.fail(`${where}[${at}] is ${value}, not ${target}`);
  }
}

function isRecord(value: unknown): value is Readonly<Record<string, unknown>> {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}

function numbersOf(value: unknown): number[] {
  if (value === null) return [Number.NaN];
  if (typeof value === "number") return [value];
  if (value === "nan") return [Number.NaN];
  if (value === "Infinity" || value === "-Infinity") return [Number(value)];
  if (Array.isArray(value)) return value.flatMap(numbersOf);
  const { data } = value as { readonly data?: ArrayLike<number> };
  if (data !== undefined) return Array.from(data);
  throw new Error(`no numbers: ${JSON.stringify(value)}`);
}

/** As a tensor takes it: null is NaN, infinities are numbers. */
export function nestedOf(value: unknown): Nested {
  if (value === null) return Number.NaN;
  if (value === "Infinity" || value === "-Infinity") return Number(value);
  return Array.isArray(value) ? value.map(nestedOf) : (value as Nested);
}

/** verl's names of settings in ours. */
export function camelCased(settings: Readonly<Record<string, unknown>>): Record<string, unknown> {
  return Object.fromEntries(
    Object.entries(settings).map(([key, value]) => [
      key.replaceAll(/_([a-z])/g, (_match, letter: string) => letter.toUpperCase()),
      value,
    ]),
  );
}
