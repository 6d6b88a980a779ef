/**
 * Request and answer of a chat completion, in the words of OpenAI's API and of vLLM's and SGLang's
 * additions to it.
 */

import { EndpointError } from "@rayling/reward-loop/client";
import { fieldOf, isList } from "@rayling/reward-manager-registry/values";
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
  const choices = fieldOf(raw, "choices");
  const promptIds = fieldOf(raw, "prompt_token_ids") ?? undefined;
  if (!isList(choices) || choices.length !== n) throw malformed(`answered without ${n} choices`);
  if (!(promptIds === undefined || isNumbers(promptIds))) {
    throw malformed("answered with prompt_token_ids that are no numbers");
  }
  return {
    promptIds: promptIds && Int32Array.from(promptIds),
    samples: choices.map((choice) => {
      const content = fieldOf(fieldOf(choice, "message"), "content");
      const finishReason = fieldOf(choice, "finish_reason");
      // A model that thought until its tokens were over says nothing.
      const text = content === null && finishReason === "length" ? "" : content;
      if (typeof text !== "string") throw malformed("answered without a choice's message.content");
      const tokens = fieldOf(fieldOf(choice, "logprobs"), "content") ?? undefined;
      if (!(tokens === undefined || isTokens(tokens))) {
        throw malformed("answered with logprobs that are no tokens with their logprob");
      }
      // vLLM's, if it was asked for them.
      const tokenIds = fieldOf(choice, "token_ids") ?? undefined;
      if (!(tokenIds === undefined || isNumbers(tokenIds))) {
        throw malformed("answered with token_ids that are no numbers");
      }
      const ids = idsOf(text, tokenIds, tokens);
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
        finishReason:
          finishReason === "length" || finishReason === "content_filter" ? "length" : "stop",
      };
    }),
  };
}

function isNumbers(value: unknown): value is readonly number[] {
  return isList(value) && value.every((one) => typeof one === "number");
}

function isTokens(value: unknown): value is readonly RawToken[] {
  return isList(value) && value.every(isToken);
}

function isToken(value: unknown): value is RawToken {
  const [token, logprob] = [fieldOf(value, "token"), fieldOf(value, "logprob")];
  const bytes = fieldOf(value, "bytes") ?? [];
  return typeof token === "string" && typeof logprob === "number" && isNumbers(bytes);
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
