/** How a judge is asked: the one contract that clients are fitted to, so that what is made of the answers knows no client. */

import type { ChatMessage } from "../client/chat-complete.ts";

/** A text of one side. */
export type JudgeMessage = ChatMessage & { readonly content: string };

export interface JudgeQuestion {
  readonly messages: readonly JudgeMessage[];
  /** What the answer has to fit, as JSON Schema; the messages say it in words, too. */
  readonly schema: Readonly<Record<string, unknown>>;
  /** Of that schema. */
  readonly name: string;
  readonly signal: AbortSignal | undefined;
}

export interface JudgeAnswer {
  readonly text: string;
  /** "length" and "content_filter" (ai: "content-filter") say that the text is not all of it. */
  readonly finishReason?: string | undefined;
  /** In any of the names that the loop knows: OpenAI's, Anthropic's, the AI SDK's. */
  readonly usage?: unknown;
}

/** Rejects as its client does; an EndpointError with REFUSED_ANSWER or TRUNCATED_ANSWER where the judge said nothing. */
export type Ask = (question: JudgeQuestion) => Promise<JudgeAnswer>;
