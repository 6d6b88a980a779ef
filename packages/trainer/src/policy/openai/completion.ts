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
    samples: choices.map((choice) => sampleOf(choice, maxResponseLength, malformed)),
  };
}

/**
 * Returns an answer without a token: nothing is learned from it, and its group is compared with it.
 * Its log-probabilities are known, as there are none: `undefined` would take those of its whole
 * batch away.
 */
function emptySample(text: string, finishReason: "stop" | "length"): CompletedSample {
  return { text, ids: new Int32Array(), logProbs: new Float32Array(), finishReason };
}

/** Returns the answers to a prompt that the server's filter kept from the model. */
export function filteredCompletion(n: number): Completion {
  const samples = Array.from({ length: n }, () => emptySample("", "length"));
  return { samples, promptIds: undefined };
}

/** Whether a request failed because a filter keeps its prompt from the model (Azure's). */
export function isFilteredPrompt({ status, body }: EndpointError): boolean {
  if (status !== 400) return false;
  try {
    const answer: unknown = JSON.parse(body);
    return fieldOf(fieldOf(answer, "error"), "code") === "content_filter";
  } catch {
    // An error page is no answer of the filter.
    return false;
  }
}

type Malformed = (problem: string) => EndpointError;

function sampleOf(
  choice: unknown,
  maxResponseLength: number,
  malformed: Malformed,
): CompletedSample {
  const reason = fieldOf(choice, "finish_reason");
  // A server that is stopped or paused breaks answers off; another attempt gives whole ones.
  if (reason === "abort" || reason === "error") {
    throw malformed(`answered with a choice whose finish_reason is ${reason}`);
  }
  // A content filter ends an answer that would have gone on.
  const finishReason = reason === "length" || reason === "content_filter" ? "length" : "stop";
  const { text, isSaid } = textOf(choice, malformed);
  const logProbs = fieldOf(choice, "logprobs");
  const tokens = fieldOf(logProbs, "content") ?? fieldOf(logProbs, "refusal") ?? undefined;
  if (!(tokens === undefined || isTokens(tokens))) {
    throw malformed("answered with logprobs that are no tokens with their logprob");
  }
  // vLLM's, if it was asked for them.
  const tokenIds = fieldOf(choice, "token_ids") ?? undefined;
  if (!(tokenIds === undefined || isNumbers(tokenIds))) {
    throw malformed("answered with token_ids that are no numbers");
  }
  const isCounted = isSaid || tokens !== undefined || tokenIds !== undefined;
  const ids = isCounted ? idsOf(text, tokenIds, tokens) : new Int32Array();
  if (tokens !== undefined && tokens.length !== ids.length) {
    throw malformed(`answered with ${tokens.length} logprobs and ${ids.length} token_ids`);
  }
  if (ids.length === 0) return emptySample(text, finishReason);
  return {
    text,
    ids: ids.slice(0, maxResponseLength),
    logProbs:
      tokens === undefined
        ? undefined
        : Float32Array.from(tokens.slice(0, maxResponseLength), ({ logprob }) => logprob),
    finishReason,
  };
}

/**
 * Returns the text of a choice, and whether it is content. A model may say nothing: it thought
 * until its tokens were over, or ended with its thoughts; it refused, and the refusal is its
 * answer; or a filter removed what it said.
 */
function textOf(
  choice: unknown,
  malformed: Malformed,
): { readonly text: string; readonly isSaid: boolean } {
  const message = fieldOf(choice, "message");
  const [content, refusal] = [fieldOf(message, "content"), fieldOf(message, "refusal")];
  if (typeof content === "string") return { text: content, isSaid: true };
  // Mistral's models that think answer in parts, of which the texts are the answer.
  if (isList(content) && content.length > 0) {
    const texts = content.map((part) => fieldOf(part, "text"));
    return { text: texts.filter((text) => typeof text === "string").join(""), isSaid: true };
  }
  if (typeof refusal === "string") return { text: refusal, isSaid: false };
  // Without a reason for its end the choice is not whole.
  if (content === null && typeof fieldOf(choice, "finish_reason") === "string") {
    return { text: "", isSaid: false };
  }
  throw malformed("answered without a choice's message.content");
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
