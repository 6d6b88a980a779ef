/**
 * Request and answer of a chat completion, in the words of OpenAI's API and of vLLM's and SGLang's
 * additions to it.
 */

import { EndpointError } from "@rayling/reward-loop/client";
import type { ChatMessage, GenerateRequest } from "../policy.ts";
import { labelOf, labelsOfText } from "./labels.ts";

/** One answer of the server. */
export interface CompletedSample {
  readonly text: string;
  readonly ids: Int32Array;
  /** Log-probability of each id, if the server reported them. */
  readonly logProbs: Float32Array | undefined;
  readonly finishReason: "stop" | "length";
}

export interface Completion {
  readonly samples: readonly CompletedSample[];
  /** Ids of the prompt, if the server reported them. */
  readonly promptIds: Int32Array | undefined;
}

export interface Asked {
  readonly messages: readonly ChatMessage[];
  readonly n: number;
  /** From 0 to below 2^31. */
  readonly seed: number | undefined;
}

export function completionBody(request: GenerateRequest, asked: Asked): Record<string, unknown> {
  const { maxResponseLength, doSample = true, temperature = 1, topP = 1, topK = -1 } = request;
  const { messages, n, seed } = asked;
  return {
    messages,
    max_tokens: maxResponseLength,
    temperature: doSample ? temperature : 0,
    logprobs: true,
    ...(n === 1 ? {} : { n }),
    ...(topP === 1 ? {} : { top_p: topP }),
    // An extension that most servers have, and OpenAI's refuses.
    ...(topK === -1 ? {} : { top_k: topK }),
    ...(seed === undefined ? {} : { seed }),
  };
}

interface RawChoice {
  readonly message?: { readonly content?: unknown };
  readonly finish_reason?: unknown;
  readonly logprobs?: { readonly content?: readonly RawToken[] | null } | null;
  /** vLLM's, if it was asked for them. */
  readonly token_ids?: readonly number[] | null;
}

interface RawToken {
  readonly token: string;
  readonly logprob: number;
  readonly bytes?: readonly number[] | null;
}

/**
 * Reads the choices of an answer.
 *
 * @throws EndpointError for a malformed answer, or one with too few choices
 */
export function readCompletion(
  url: string,
  raw: unknown,
  { n, maxResponseLength }: { readonly n: number; readonly maxResponseLength: number },
): Completion {
  const malformed = (problem: string): EndpointError =>
    new EndpointError(url, problem, { code: "MALFORMED_ANSWER", body: JSON.stringify(raw) });
  const { choices, prompt_token_ids: promptIds } = (raw ?? {}) as {
    readonly choices?: readonly RawChoice[];
    readonly prompt_token_ids?: readonly number[] | null;
  };
  if (!Array.isArray(choices) || choices.length !== n) {
    throw malformed(`answered without ${n} choices`);
  }
  return {
    promptIds: promptIds == null ? undefined : Int32Array.from(promptIds),
    samples: (choices as readonly RawChoice[]).map((choice) => {
      const content = choice.message?.content;
      // A model that thought until its tokens were over says nothing.
      const text = content === null && choice.finish_reason === "length" ? "" : content;
      if (typeof text !== "string") throw malformed("answered without a choice's message.content");
      const tokens = choice.logprobs?.content ?? undefined;
      const ids = idsOf(text, choice.token_ids ?? undefined, tokens);
      if (tokens !== undefined && tokens.length !== ids.length) {
        throw malformed(`answered with ${tokens.length} logprobs and ${ids.length} token_ids`);
      }
      return {
        text,
        ids: ids.slice(0, maxResponseLength),
        logProbs:
          tokens === undefined
            ? undefined
            : Float32Array.from(tokens.slice(0, maxResponseLength), ({ logprob }) => logprob),
        // A content filter ends an answer that would have gone on.
        finishReason: /^(length|content_filter)$/.test(String(choice.finish_reason))
          ? "length"
          : "stop",
      };
    }),
  };
}

function idsOf(
  text: string,
  ids: readonly number[] | undefined,
  tokens: readonly RawToken[] | undefined,
): Int32Array {
  if (ids !== undefined) return Int32Array.from(ids);
  if (tokens === undefined) return labelsOfText(text);
  const encoder = new TextEncoder();
  return Int32Array.from(tokens, ({ token, bytes }) => labelOf(bytes ?? encoder.encode(token)));
}
