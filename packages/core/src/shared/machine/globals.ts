/** Test runners give each test file globals of its own, beside those of Node. */
import util from "node:util";

/** Whether this code has the globals that Node itself has. */
export function hasGlobalsOfNode(): boolean {
  return Object.getPrototypeOf(util.inspect) === Function.prototype;
}
