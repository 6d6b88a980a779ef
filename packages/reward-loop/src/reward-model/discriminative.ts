/**
 * Scores a sample by a discriminative reward model (verl `compute_score_disrm`): the conversation
 * with the response in it, rendered by the reward model's chat template, goes to its server, whose
 * answer is the score.
 *
 * The response keeps its special tokens except the policy's end-of-sequence text. A leading
 * beginning-of-sequence token of the rendered text is removed, because the server adds it.
 */

import { InvalidSampleError, MissingTokenizerError } from "@rayling/reward-manager-registry";
import type { RewardManager, RewardResult, RewardSample } from "@rayling/reward-manager-registry";
import { EndpointError } from "../client/endpoint-error.ts";
import { postRequest } from "../client/post-request.ts";
import type { ChatMessage, ChatTokenizer } from "../tokenizer/index.ts";
import { engines } from "./engines.ts";
import type { EngineName } from "../options/defaults/reward-model.ts";

export interface DiscriminativeSettings {
  readonly engine: EngineName;
  /** The name of the model at its servers. */
  readonly model: string;
  /** host:port of a server, or of the router before several. */
  readonly address: string;
  /** Sent there as `Authorization: Bearer <token>`. Default: nothing is sent. */
  readonly token?: string | undefined;
  /** Tries of a request. Default 16. */
  readonly maxRetries?: number;
  /** The limit for one try. Default: that of postRequest. */
  readonly timeoutMs?: number;
}

export interface DiscriminativeParts {
  /** The reward model's tokenizer. */
  readonly tokenizer: ChatTokenizer;
  /** The policy's tokenizer: decodes responses that come as token ids, and knows their end. */
  readonly policyTokenizer?: ChatTokenizer | undefined;
  /** Returns the signal of the sample that is being scored. */
  readonly signal?: () => AbortSignal;
}

export class DiscriminativeReward implements RewardManager {
  readonly #settings: DiscriminativeSettings;
  readonly #parts: DiscriminativeParts;

  constructor(settings: DiscriminativeSettings, parts: DiscriminativeParts) {
    this.#settings = settings;
    this.#parts = parts;
  }

  /** Rejects with InvalidSampleError, MissingTokenizerError or EndpointError. */
  async runSingle(sample: RewardSample): Promise<RewardResult> {
    const { engine, model, address, token, maxRetries, timeoutMs } = this.#settings;
    const dialect = engines[engine];
    const url = `http://${address}${dialect.scorePath}`;
    const signal = this.#parts.signal?.();
    const answer = await postRequest(url, dialect.scoreBody(model, this.#inputOf(sample)), {
      headers: token === undefined ? {} : { authorization: `Bearer ${token}` },
      maxRetries,
      timeoutMs,
      signal,
    });
    const score = dialect.scoreOf(answer);
    if (score === undefined) {
      const body = JSON.stringify(answer);
      throw new EndpointError(url, "answered without a score", { code: "MALFORMED_ANSWER", body });
    }
    return { rewardScore: score, rewardExtraInfo: { acc: score } };
  }

  #inputOf(sample: RewardSample): string {
    const { rawPrompt } = sample;
    if (rawPrompt === undefined || !Array.isArray(rawPrompt)) {
      throw new InvalidSampleError("rawPrompt", "a list of { role, content }", typeof rawPrompt);
    }
    const { tokenizer } = this.#parts;
    const content = this.#contentOf(sample);
    const messages: readonly ChatMessage[] = [...rawPrompt, { role: "assistant", content }];
    const text = tokenizer.applyChatTemplate(messages);
    const { bosToken } = tokenizer;
    return bosToken !== undefined && text.startsWith(bosToken) ? text.slice(bosToken.length) : text;
  }

  #contentOf({ response, dataSource }: RewardSample): string {
    const { policyTokenizer } = this.#parts;
    const decoded = (ids: Exclude<RewardSample["response"], string>): string => {
      if (policyTokenizer === undefined) throw new MissingTokenizerError(dataSource);
      return policyTokenizer.decode(ids, { skipSpecialTokens: false });
    };
    const text = typeof response === "string" ? response : decoded(response);
    const { eosToken } = policyTokenizer ?? {};
    return eosToken === undefined ? text : text.replaceAll(eosToken, "");
  }
}
