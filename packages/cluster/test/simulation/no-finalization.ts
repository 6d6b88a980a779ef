/**
 * Imported first: nothing is told that it was collected, for when that happens is no part of the world and differs from run to run. What goes with a handle or a ref
 * that nobody holds has its tests with real collectors.
 */
globalThis.FinalizationRegistry = class {
  readonly [Symbol.toStringTag] = "FinalizationRegistry";

  register(): void {
    // Never called back.
  }

  unregister(): boolean {
    return false;
  }
} as unknown as FinalizationRegistryConstructor;
