/**
 * Score functions that wait as a judge does: so long as the number of the sample says, and for a
 * call that is begun a second time so long as that says.
 */
import { setTimeout as delay } from "node:timers/promises";
import type { ScoreInput } from "@rayling/reward-manager-registry";

const calls = new Map<string, number>();

export async function light({ solutionStr }: ScoreInput): Promise<number> {
  await delay(lightMs(Number(solutionStr)));
  return 1;
}

export async function heavy({ solutionStr, signal }: ScoreInput): Promise<number> {
  const before = calls.get(solutionStr) ?? 0;
  calls.set(solutionStr, before + 1);
  await delay(heavyMs(Number(solutionStr) + 100_000 * before), undefined, { signal });
  return 1;
}

/** Holds its thread, as a parser or a solver does. */
export function blocking(): number {
  Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, 200);
  return 1;
}

export async function brief(): Promise<number> {
  await delay(10);
  return 1;
}

export async function nothing(): Promise<number> {
  return 1;
}

export function nothingSync(): number {
  return 1;
}

/** At which all samples wait that a thread holds. */
let gate: { readonly count: Int32Array; readonly opened: Promise<unknown> } | undefined;

/** Waits until all are told to go on; counts who waits. What it keeps of its own counts, too. */
export async function held({ counter }: ScoreInput): Promise<number> {
  if (!(counter instanceof SharedArrayBuffer)) throw new TypeError("there is no counter");
  gate ??= gateOf(counter);
  Atomics.add(gate.count, 0, 1);
  Atomics.notify(gate.count, 0);
  await gate.opened;
  return 1;
}

function gateOf(counter: SharedArrayBuffer): NonNullable<typeof gate> {
  const count = new Int32Array(counter);
  return { count, opened: Promise.resolve(Atomics.waitAsync(count, 1, 0).value) };
}

/** How many calls the endpoint that nobody knows takes at once, and how long each of them lasts. */
export const limited = { capacity: 448, ms: 200 } as const;

let underWay = 0;
let refused = 0;

/**
 * Refuses what is too much, as an endpoint does. Tells when it was done, and how often it has
 * refused so far.
 */
export async function tooMany(): Promise<{ score: number; atMs: number; refused: number }> {
  if (underWay >= limited.capacity) {
    refused += 1;
    throw Object.assign(new Error("too many"), { status: 429, headers: {} });
  }
  underWay += 1;
  await delay(limited.ms);
  underWay -= 1;
  return { score: 1, atMs: performance.timeOrigin + performance.now(), refused };
}

/** Uniform, 0 to 40 ms: the recipe's judge at 1:1000. */
export function lightMs(index: number): number {
  return 40 * uniform(index, 1);
}

/** Lognormal, sigma 1, with the same mean. */
export function heavyMs(index: number): number {
  const [one, other] = [Math.max(1e-9, uniform(index, 2)), uniform(index, 3)];
  const normal = Math.sqrt(-2 * Math.log(one)) * Math.cos(2 * Math.PI * other);
  return 20 * Math.exp(normal - 0.5);
}

/** In [0, 1): the finaliser of MurmurHash3 over both numbers. */
function uniform(index: number, stream: number): number {
  let bits = Math.imul(index + 1, 0x9e3779b1) ^ Math.imul(stream, 0x85ebca6b);
  bits = Math.imul(bits ^ (bits >>> 16), 0x85ebca6b);
  bits = Math.imul(bits ^ (bits >>> 13), 0xc2b2ae35);
  return ((bits ^ (bits >>> 16)) >>> 0) / 2 ** 32;
}
