/**
 * `@rayling/reward-manager-registry/values`: checks of values that may be anything, and of other
 * processes, for the packages that stand on this one. It is an entry of its own because it loads
 * nothing else.
 */

export { codeOf, messageOf } from "./caught.ts";
export { itemAt, optional, present } from "./present.ts";
export { isRunning, killGroup } from "./processes.ts";
export {
  fieldOf,
  hasMethod,
  isList,
  isRecord,
  isThenable,
  isTypedArray,
  itemsIn,
  recordIn,
} from "./records.ts";
