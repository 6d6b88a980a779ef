/**
 * Asks a generative model behind an OpenAI-compatible server (`/v1/chat/completions`) for one
 * answer, for score functions that ask a judge.
 */

import { chatOptions } from "../options/defaults/asking.ts";
import type { TableOf } from "../options/defaults/calls.ts";
import { checkOptions } from "../options/read.ts";
import { apiUrlOf } from "./address.ts";
import { chats, noteFailure } from "./announced.ts";
import { chatAnswerOf } from "./chat-answer.ts";
import type { ChatAnswer, SilentEnd } from "./chat-answer.ts";
import { postJson } from "./post-json.ts";

export interface ChatMessage {
  readonly role: "system" | "user" | "assistant" | "tool" | "developer";
  /** A text, or parts, as images beside texts: sent as they are. */
  readonly content: string | readonly ContentPart[];
}

/** A part in the API's form: { type: "text", text }, { type: "image_url", image_url: { url } }. */
export interface ContentPart {
  readonly type: string;
  readonly [key: string]: unknown;
}

export interface ChatOptions {
  /**
   * The API's root: `http://host:port/v1`; a bare host:port (a router's address) stands for that. A
   * query (`?api-version=…`) is kept.
   */
  readonly baseUrl: string;
  readonly model: string;
  readonly messages: readonly ChatMessage[];
  readonly apiKey?: string | undefined;
  readonly temperature?: number | undefined;
  readonly maxTokens?: number | undefined;
  /** Any other field of the request, by the API's own name. */
  readonly body?: Readonly<Record<string, unknown>> | undefined;
  readonly headers?: Readonly<Record<string, string>> | undefined;
  /**
   * Ends without a text that are worth another attempt: the tokens were used up ("length"), the
   * model or a filter refused ("content_filter"). Default: none, as the same call very likely ends
   * alike.
   */
  readonly again?: readonly SilentEnd[] | undefined;
  /**
   * Default: no limit, as long as Node's fetch receives something every five minutes; Infinity: as
   * long as a timer can, 24 days. The loop's own deadlines hold besides.
   */
  readonly timeoutMs?: number | undefined;
  readonly signal?: AbortSignal | undefined;
}

/**
 * Rejects with EndpointError, which the loop's retries, limits and prices understand (see
 * chatAnswerOf for its codes), with the signal's reason, with RewardLoopOptionError, or with
 * RangeError for a `timeoutMs` that is no number.
 */
export async function chatComplete(options: ChatOptions): Promise<ChatAnswer> {
  checkOptions(chatOptions satisfies TableOf<ChatOptions>, options, "chatComplete");
  const { baseUrl, model, messages, temperature, maxTokens, body } = options;
  const url = apiUrlOf(baseUrl, "/chat/completions");
  const request = {
    model,
    messages,
    ...(temperature === undefined ? {} : { temperature }),
    ...(maxTokens === undefined ? {} : { max_tokens: maxTokens }),
    ...body,
  };
  const answer = answered(url, request, options);
  if (chats.hasSubscribers) chats.publish({ url, request, answer });
  return await answer;
}

async function answered(
  url: string,
  request: object,
  { apiKey, headers, timeoutMs, signal, again }: ChatOptions,
): Promise<ChatAnswer> {
  const authorization = apiKey === undefined ? {} : { authorization: `Bearer ${apiKey}` };
  const how = { headers: { ...authorization, ...headers }, timeoutMs, signal };
  const answer = await postJson(url, request, how);
  try {
    return chatAnswerOf(answer, url, again);
  } catch (error) {
    throw noteFailure(error);
  }
}
