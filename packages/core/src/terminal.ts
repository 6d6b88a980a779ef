/**
 * Text for terminals, for the sister packages. This entry is internal and changes with any release.
 */
export {
  escaped,
  hasObeyed,
  takesColours,
  terminalJson,
  terminalLine,
  terminalText,
} from "./shared/text/terminal-text.ts";
export { warn } from "./shared/text/warning.ts";
export { watchWrites } from "./shared/text/watched-writes.ts";
export type { WatchedWrites } from "./shared/text/watched-writes.ts";
export { wrapped } from "./shared/text/wrapped.ts";
