/**
 * `@rayling/reward-manager-registry/values`: checks of values that may be anything, and of other
 * processes, and what clients of endpoints report to a loop, for the packages that stand on this
 * one. It is an entry of its own because it loads nothing else.
 */

export { announcements, noteRateLimits, pause, requests, turnOf } from "./announced.ts";
export type { AnnouncedRequest } from "./announced.ts";
export { codeOf, messageOf } from "./caught.ts";
export { itemAt, optional, present } from "./present.ts";
export { isRunning, killGroup } from "./processes.ts";
export { announcedIn, resetAfterMs, retryAfterIn } from "./rate-limit-headers.ts";
export type { AnnouncedLimit, AnnouncedLimits } from "./rate-limit-headers.ts";
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
