/** Text for terminals, for the sister packages. Not for others; it changes with any release. */
export {
  escaped,
  hasObeyed,
  takesColours,
  terminalJson,
  terminalLine,
  terminalText,
} from "./shared/text/terminal-text.ts";
export { warn } from "./shared/text/warning.ts";
