/**
 * The text of a message. Images and what else a content may have are for models that see
 * them.
 */

import type { ChatMessage } from "./policy.ts";

/** A part that is no text stands there by its type, as "<image>". */
export function messageText({ content }: Pick<ChatMessage, "content">): string {
  if (typeof content === "string") return content;
  return content
    .map(({ type, text }) => (type === "text" && typeof text === "string" ? text : `<${type}>`))
    .join("");
}
