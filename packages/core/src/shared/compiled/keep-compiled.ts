/** Keeps what V8 has compiled of this package, where kept-code.ts has found nothing kept. */

/** The build makes it a parameter of all code of the package. */
declare const keepCompiled: (() => void) | undefined;

let isAsked = false;

let keep: (() => void) | undefined = typeof keepCompiled === "function" ? keepCompiled : undefined;

/** Keeps it so much later, or at the end of the thread or process, if that is before. */
export function keepCompiledAfter(ms: number): void {
  if (keep === undefined || isAsked) return;
  isAsked = true;
  setTimeout(keepNow, ms).unref();
  process.once("exit", keepNow);
}

function keepNow(): void {
  process.removeListener("exit", keepNow);
  keep?.();
  keep = undefined;
}
