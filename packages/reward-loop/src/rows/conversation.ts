/** Conversations: lists of messages with a role and a content. */

import type { RewardSample } from "@rayling/reward-manager-registry";
import { isRow } from "./value-at.ts";

export type Conversation = NonNullable<RewardSample["rawPrompt"]>;

export function isConversation(value: unknown): value is Conversation {
  return (
    Array.isArray(value) &&
    value.every((one) => isRow(one) && typeof one["role"] === "string" && "content" in one)
  );
}

/** Parts with a text: those of OpenAI's chat completions, and of its responses. */
const ofText: ReadonlySet<unknown> = new Set(["text", "input_text", "output_text"]);

/** A content is a text, or parts of which all are texts. */
export function textOf(content: unknown): string | undefined {
  if (typeof content === "string") return content;
  if (!Array.isArray(content) || content.length === 0) return undefined;
  const texts = content.map((part: unknown) =>
    isRow(part) && ofText.has(part["type"]) ? part["text"] : undefined,
  );
  return texts.every((text) => typeof text === "string") ? texts.join("") : undefined;
}
