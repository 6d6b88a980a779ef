/** The contract for asking a judge: each client is adapted to it, so that judges know no client. */

import type { ChatMessage } from "../../client/chat-complete.ts";

/** A text of one side. */
export type JudgeMessage = ChatMessage & { readonly content: string };

export interface JudgeQuestion {
  readonly messages: readonly JudgeMessage[];
  /** The JSON Schema that the answer has to fit; the messages describe it in words, too. */
  readonly schema: Readonly<Record<string, unknown>>;
  /** The name of the schema. */
  readonly name: string;
  readonly signal: AbortSignal | undefined;
}

export interface JudgeAnswer {
  readonly text: string;
  /** "length" and "content_filter" (ai: "content-filter") say that the text is not all of it. */
  readonly finishReason?: string | undefined;
  /** The usage in any form that the loop knows: OpenAI's, Anthropic's, the AI SDK's. */
  readonly usage?: unknown;
}

/**
 * Rejects as its client does; an EndpointError with REFUSED_ANSWER, TRUNCATED_ANSWER or
 * MALFORMED_ANSWER for an answer without text.
 */
export type Ask = (question: JudgeQuestion) => Promise<JudgeAnswer>;
