/** Text for terminals, for the sister packages. Not for others; it changes with any release. */
export {
  escaped,
  hasObeyed,
  takesColours,
  terminalJson,
  terminalLine,
  terminalText,
} from "./shared/terminal-text.ts";
export { warn } from "./shared/warning.ts";
