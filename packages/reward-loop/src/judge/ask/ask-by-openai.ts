/** A judge asked by the openai SDK, or by what has its form. */

import { fieldOf, noteRateLimits } from "@rayling/reward-manager-registry/values";
import { noteUsage } from "../../client/announced.ts";
import { chatAnswerOf } from "../../client/chat-answer.ts";
import { askByOpenAIOptions } from "../../options/defaults/asking.ts";
import type { TableOf } from "../../options/defaults/calls.ts";
import { checkOptions } from "../../options/read.ts";
import type { Ask } from "./ask.ts";
import { responseFormatOf } from "./response-format.ts";
import type { AnswerFormat } from "./response-format.ts";
import { withText } from "./with-text.ts";

/**
 * The part of the SDK's client that is used. Make it with `maxRetries: 0`: the loop retries, within
 * the limits of all workers.
 */
export interface OpenAIClient {
  readonly chat: {
    readonly completions: {
      // The SDK's own types are stricter than what goes through it.
      // oxlint-disable-next-line typescript/no-explicit-any
      readonly create: (body: any, options?: any) => PromiseLike<unknown>;
    };
  };
}

export interface AskByOpenAIOptions {
  readonly model: string;
  /** Any other field of the request, by the API's own name. */
  readonly body?: Readonly<Record<string, unknown>> | undefined;
  /** The form of the answer that the request demands. Default "json_schema". */
  readonly format?: AnswerFormat | undefined;
}

/** Throws RewardLoopOptionError. */
export function askByOpenAI(client: OpenAIClient, options: AskByOpenAIOptions): Ask {
  checkOptions(askByOpenAIOptions satisfies TableOf<AskByOpenAIOptions>, options, "askByOpenAI");
  const { model, body, format } = options;
  return async ({ messages, signal, ...question }) => {
    const asked = client.chat.completions.create(
      { model, messages, ...responseFormatOf(question, format), ...body },
      { signal },
    );
    const { data: given, response } = await withResponse(asked);
    const data = typeof given === "string" ? parsed(given) : given;
    noteUsage(fieldOf(data, "usage"));
    if (response !== undefined) noteRateLimits(response.headers);
    const url = response?.url ?? model;
    return withText(chatAnswerOf(data, url), url);
  };
}

/** The SDK gives a text where the server does not say that it is JSON. */
function parsed(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return text;
  }
}

interface Responded {
  readonly data: unknown;
  readonly response: Response | undefined;
}

/** The SDK's promise has the answer's headers, too; another client's may be a plain one. */
async function withResponse(
  asked: PromiseLike<unknown> & { readonly withResponse?: () => Promise<Responded> },
): Promise<Responded> {
  if (asked.withResponse !== undefined) return asked.withResponse();
  return { data: await asked, response: undefined };
}
