/**
 * Rollouts of a model behind any OpenAI-compatible server, by its chat completions. The user's
 * updater receives the updates; without one the policy only evaluates.
 *
 * Log-probabilities are the server's: vLLM's are those before the temperature, unless it was
 * started with `--logprobs-mode processed_logprobs`. Token ids are the server's if it returns them
 * (`body: { return_token_ids: true }`), else labels of the tokens' bytes. A request that fails for
 * good rejects its call: no sample is left out silently.
 */

import { remote } from "@rayling/core";
import { messageText } from "../message-text.ts";
import type { ActorClass } from "@rayling/core";
import { apiUrlOf, EndpointError, postRequest } from "@rayling/reward-loop/client";
import type { ChatTokenizer } from "@rayling/reward-loop/tokenizer";
import pLimit from "p-limit";
import { present } from "@rayling/reward-manager-registry/values";
import { TrainerInputError } from "../../errors.ts";
import type {
  ChatMessage,
  GenerateRequest,
  LogProbs,
  Policy,
  PolicyInfo,
  PolicyState,
  PolicyUpdate,
  Rollout,
  TokenRows,
  UpdateMetrics,
} from "../policy.ts";
import { uniformOf } from "../../values/random.ts";
import { asTheyEnd } from "./as-they-end.ts";
import {
  completionBody,
  filteredCompletion,
  isFilteredPrompt,
  readCompletion,
} from "./completion.ts";
import type { Completion } from "./completion.ts";
import { labelsOfText } from "./labels.ts";
import { checkOpenAISettings, longestMs } from "./openai-settings.ts";
import type { OpenAIPolicySettings } from "./openai-settings.ts";
import { loadUpdater } from "./updater.ts";
import type { PolicyUpdater } from "./updater.ts";

/** Samples of a prompt that one request asks for. */
interface Piece {
  readonly prompt: number;
  readonly first: number;
  readonly count: number;
}

/** A policy behind an OpenAI-compatible server, which may train by an updater. */
export class OpenAIPolicy implements Policy {
  readonly #settings: OpenAIPolicySettings;
  readonly #url: string;
  readonly #limit: <Result>(task: () => Promise<Result>) => Promise<Result>;
  #updater: Promise<PolicyUpdater> | undefined;
  #tokenizer: Promise<ChatTokenizer> | undefined;
  #version = 0;

  /** Throws TrainerInputError that names the setting. */
  constructor(settings: OpenAIPolicySettings) {
    checkOpenAISettings(settings);
    this.#settings = settings;
    this.#url = apiUrlOf(settings.baseUrl, "/chat/completions");
    this.#limit = pLimit(settings.maxConcurrency ?? 32);
  }

  /** Returns the model with its server, and whether it trains. */
  async describe(): Promise<PolicyInfo> {
    const updater = await this.#loadUpdater();
    return {
      name: `${this.#settings.model} at ${this.#settings.baseUrl}`,
      scoresTokens: updater?.logProbs !== undefined,
      trains: updater !== undefined,
      padTokenId: 0,
    };
  }

  /** Counts with the tokenizer, if there is one; else estimates a quarter of the bytes. */
  async promptLengths(prompts: readonly (readonly ChatMessage[])[]): Promise<number[]> {
    const ids = await Promise.all(prompts.map((messages) => this.#promptIds(messages)));
    return ids.map(({ length }) => length);
  }

  /**
   * Throws EndpointError of the first request that failed for good; the others are given up then,
   * as they are when the answers are no longer taken.
   */
  async *generate(request: GenerateRequest): AsyncGenerator<readonly Rollout[], void, undefined> {
    const pieces = this.#piecesOf(request);
    const givenUp = new AbortController();
    const jobs = pieces.map((piece) =>
      this.#limit(() => {
        givenUp.signal.throwIfAborted();
        return this.#ask(request, piece, givenUp.signal);
      }),
    );
    try {
      for await (const ended of asTheyEnd(jobs)) yield ended.flat();
    } finally {
      givenUp.abort();
    }
  }

  /** Asks the updater. Rejects with TrainerInputError if it does not score tokens. */
  async logProbs(rows: TokenRows): Promise<LogProbs> {
    const updater = await this.#loadUpdater();
    if (updater?.logProbs !== undefined) return updater.logProbs(rows);
    throw new TrainerInputError("policy", "a policy behind a server does not score tokens anew");
  }

  /** Asks the updater. Rejects with TrainerInputError if there is none. */
  async update(update: PolicyUpdate): Promise<UpdateMetrics> {
    const updater = await this.#loadUpdater();
    if (updater === undefined) {
      throw new TrainerInputError("updater", "this policy does not train: it has no updater");
    }
    const metrics = await updater.update(update);
    this.#version += 1;
    return metrics;
  }

  /** Returns the updater's state, with the number of updates; without weights if it has none. */
  async state(): Promise<PolicyState> {
    const updater = await this.#loadUpdater();
    const state = await updater?.state?.();
    return { weights: {}, optimizer: {}, ...state, version: this.#version };
  }

  /** Restores a state. Rejects with TrainerInputError for weights that have no updater. */
  async setState(state: PolicyState): Promise<void> {
    const updater = await this.#loadUpdater();
    if (updater?.setState !== undefined) await updater.setState(state);
    else if (Object.keys({ ...state.weights, ...state.optimizer }).length > 0) {
      throw new TrainerInputError("weights", "this policy keeps no weights that could be set");
    }
    this.#version = state.version;
  }

  /**
   * Splits into requests, those of one prompt next to each other: a server that has cached their
   * beginning answers them faster.
   */
  #piecesOf({ prompts, n = 1, maxResponseLength }: GenerateRequest): Piece[] {
    for (const [name, count] of Object.entries({ n, maxResponseLength })) {
      if (Number.isSafeInteger(count) && count > 0) continue;
      throw new TrainerInputError(name, `${name} must be a whole number above 0, not ${count}`);
    }
    const { samplesPerRequest: most = 1 } = this.#settings;
    const starts = Array.from({ length: Math.ceil(n / most) }, (_, i) => i * most);
    return prompts.flatMap((_, prompt) =>
      starts.map((first) => ({ prompt, first, count: Math.min(most, n - first) })),
    );
  }

  async #ask(request: GenerateRequest, piece: Piece, signal: AbortSignal): Promise<Rollout[]> {
    const {
      model,
      apiKey,
      headers,
      body,
      maxRetries,
      // Without one, Node's fetch gives up after five minutes in which no byte came, and an answer
      // comes all at once.
      timeoutMs = longestMs,
      secondMs,
    } = this.#settings;
    const { prompt, first, count } = piece;
    const messages = present(request.prompts[prompt], `prompt ${prompt}`);
    const seed =
      request.seed === undefined
        ? undefined
        : Math.floor(uniformOf(request.seed, prompt, first) * 2 ** 31);
    const version = this.#version;
    const read = (answer: unknown): Completion =>
      readCompletion(this.#url, answer, {
        n: count,
        maxResponseLength: request.maxResponseLength,
      });
    const completion = await postRequest(
      this.#url,
      { model, ...completionBody(request, { messages, n: count, seed }), ...body },
      {
        headers: {
          ...(apiKey === undefined ? {} : { authorization: `Bearer ${apiKey}` }),
          ...headers,
        },
        maxRetries,
        timeoutMs,
        signal,
        ...(secondMs === undefined ? {} : { secondMs }),
        check: read,
      },
    ).then(read, (error: unknown) => {
      if (error instanceof EndpointError && isFilteredPrompt(error)) {
        return filteredCompletion(count);
      }
      throw error;
    });
    const { samples, promptIds = await this.#promptIds(messages) } = completion;
    return samples.map(({ text, ids, logProbs, finishReason }, i) => ({
      prompt,
      sample: first + i,
      promptIds,
      responseIds: ids,
      response: text,
      ...(logProbs === undefined ? {} : { rolloutLogProbs: logProbs }),
      finishReason,
      version,
    }));
  }

  async #promptIds(messages: readonly ChatMessage[]): Promise<Int32Array> {
    const { tokenizer: path } = this.#settings;
    if (path === undefined) return labelsOfText(messages.map(messageText).join("\n"));
    this.#tokenizer ??= import("@rayling/reward-loop/tokenizer").then(({ createTokenizer }) =>
      createTokenizer({ path }),
    );
    const tokenizer = await this.#tokenizer;
    const text = tokenizer.applyChatTemplate(
      messages.map((message) => ({ ...message })),
      { addGenerationPrompt: true },
    );
    return Int32Array.from(tokenizer.encode(text, { addSpecialTokens: false }));
  }

  #loadUpdater(): Promise<PolicyUpdater | undefined> {
    const { updater } = this.#settings;
    if (updater === undefined) return Promise.resolve(undefined);
    return (this.#updater ??= loadUpdater(updater));
  }
}

/** `OpenAIPolicy` as an actor: `OpenAIPolicyActor.remote(settings)`. */
export const OpenAIPolicyActor: ActorClass<typeof OpenAIPolicy> = remote(OpenAIPolicy);
