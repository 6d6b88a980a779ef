/**
 * Imported first: nothing is told that it was collected, for when that happens is no part of the world and differs from run to run. What goes with a handle or a ref
 * that nobody holds has its tests with real collectors.
 */
class NoFinalization {
  readonly [Symbol.toStringTag] = "FinalizationRegistry";

  register(): void {
    // Never called back.
  }

  unregister(): boolean {
    return false;
  }
}

globalThis.FinalizationRegistry = NoFinalization;

/** Whether anybody is told. */
export const finalized: boolean = false;
