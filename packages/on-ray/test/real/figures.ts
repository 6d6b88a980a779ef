/** Figures of tests on a real Ray, for people: no test asserts them. */

/** Prints how long something has taken since `performance.now()` was `startMs`. */
export function tookSince(startMs: number, what: string): void {
  figure(what, `${((performance.now() - startMs) / 1000).toFixed(1)} s`);
}

export function figure(what: string, value: string): void {
  process.stdout.write(`figure | ${what}: ${value}\n`);
}
