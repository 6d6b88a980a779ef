/**
 * Messages as a chat template of transformers gets them: `apply_chat_template` of transformers
 * 5.24.0 rewrites them before it renders (`_normalize_chat_messages`, `_alias_reasoning_fields`).
 * `test/tokenizer/` has transformers' own answers. Knows no templates.
 */

import { ChatTemplateError } from "../chat-template/error.ts";

type Message = Readonly<Record<string, unknown>>;

/** Names of a message's reasoning; the first that has some counts. */
const reasoningNames = ["reasoning_content", "thinking", "reasoning"];

/**
 * Returns the messages without the keys of a message itself that are null, and with a message's
 * reasoning under both names that templates read, `reasoning_content` and `thinking`. The order of
 * the keys is that of transformers.
 *
 * Throws ChatTemplateError (CHAT_TEMPLATE_FAILED) for a conversation without messages.
 */
export function templateMessages(messages: readonly Message[]): readonly Message[] {
  if (messages.length === 0) {
    throw new ChatTemplateError("CHAT_TEMPLATE_FAILED", "the conversation has no messages");
  }
  return messages.map((message) => withReasoning(withoutNulls(message)));
}

function withoutNulls(message: Message): Message {
  const entries = Object.entries(message);
  return Object.fromEntries(entries.filter(([, value]) => value !== null && value !== undefined));
}

function withReasoning(message: Message): Message {
  const name = reasoningNames.find((one) => Object.hasOwn(message, one));
  if (name === undefined) return message;
  const reasoning = message[name];
  return { thinking: reasoning, ...message, reasoning_content: reasoning };
}
