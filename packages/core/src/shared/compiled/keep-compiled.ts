/** Keeps what V8 has compiled of this package, where kept-code.ts has found nothing kept. */

/** The build makes it a parameter of all code of the package. */
declare const keepCompiled: (() => void) | undefined;

let keep: (() => void) | undefined = typeof keepCompiled === "function" ? keepCompiled : undefined;

/** Keeps it by now, once. */
export function keepCompiledNow(): void {
  keep?.();
  keep = undefined;
}

/** Keeps it so much later, if the thread or the process is still there. */
export function keepCompiledAfter(ms: number): void {
  if (keep !== undefined) setTimeout(keepCompiledNow, ms).unref();
}
