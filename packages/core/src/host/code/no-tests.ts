/**
 * Replaces `node:test` for modules in a host: its tests are the driver's. Node would run them again
 * in each worker that loads the file for its classes.
 *
 * Hosts of drivers that run tests load it (host/code/test-files.ts); functions that start no test
 * are Node's own.
 */
import type nodeTest from "node:test";

const real: typeof nodeTest = process.getBuiltinModule("node:test");

/** Replaces a test, a suite or a hook. */
const nothing = (): Promise<void> => Promise.resolve();
const variants = { skip: nothing, todo: nothing, only: nothing, expectFailure: nothing };

const test: object = Object.assign((): Promise<void> => Promise.resolve(), real, variants);
const suite: object = Object.assign((): Promise<void> => Promise.resolve(), variants);
const hooks = { before: nothing, after: nothing, beforeEach: nothing, afterEach: nothing };
const all: object = Object.assign(test, hooks, variants, {
  test,
  it: test,
  suite,
  describe: suite,
  default: test,
});

export const run: typeof real.run = real.run;
export const mock: typeof real.mock = real.mock;
export const snapshot: typeof real.snapshot = real.snapshot;
export const assert: typeof real.assert = real.assert;
export {
  nothing as after,
  nothing as afterEach,
  nothing as before,
  nothing as beforeEach,
  nothing as only,
  nothing as skip,
  nothing as todo,
  nothing as expectFailure,
  suite as describe,
  suite,
  test as it,
  test,
};
export default all;
/** The exports that `require` returns. */
export { all as "module.exports" };
