/** A judge as score functions call it: values for its prompt in, a score with what it cost out. */

import type { ScoreRecord } from "@rayling/reward-manager-registry";
import { structuredOptions } from "../options/defaults/asking.ts";
import { checkOptions } from "../options/read.ts";
import { priceOf } from "../spend/cost-budget.ts";
import type { Prices } from "../spend/cost-budget.ts";
import type { TokenUsage } from "../outcome.ts";
import type { Ask, JudgeMessage } from "./ask/ask.ts";
import { countIn, withCount } from "./judge-count.ts";
import type { JudgeCount } from "./judge-count.ts";
import { askFor, checkAttempts, jsonSchemaOf } from "./structured.ts";
import type { JudgeSchema } from "./structured.ts";
import { fillTemplate } from "./template.ts";
import type { PromptValues } from "./template.ts";

export interface JudgeOptions {
  readonly ask: Ask;
  /** The question to the judge, with places for values: `Question: {{question}}`. */
  readonly prompt: string;
  /** The system message. May have places, too. */
  readonly system?: string | undefined;
  /** How often it is asked until its answer fits, at most. Default 3. */
  readonly attempts?: number | undefined;
  /** Prices for the `cost` of the score. The loop counts by `usage`, and needs none here. */
  readonly prices?: Prices | undefined;
}

/** A score that a score function may return unchanged. */
export interface JudgeScore extends ScoreRecord {
  /** null: the judge cannot tell. */
  readonly score: number | null;
  /** The usage of all its answers, as far as it is known. */
  readonly usage: TokenUsage | undefined;
  /** How often it was asked. */
  readonly asked: number;
  /** In the currency of the prices, where they are given. */
  readonly cost?: number;
}

export interface JudgeCall {
  readonly signal?: AbortSignal | undefined;
}

/**
 * Rejects with JudgePromptError, with JudgeAnswerError where no answer fits, and as its client
 * does: an EndpointError with REFUSED_ANSWER or TRUNCATED_ANSWER for an answer without text. Each
 * is an outcome of its own in the loop. The error says what was used before it, as a score does.
 */
export type Judge = (values: PromptValues, call?: JudgeCall) => Promise<JudgeScore>;

/**
 * A judge whose answers fit a schema of the user's. Throws RewardLoopOptionError, and
 * JudgePromptError for a schema that no JSON fits or that is not of zod 4, and a number of attempts
 * that is none.
 *
 * @param options `scoreOf` returns the score of an answer and further extra info; null: it cannot
 * tell
 */
export function structuredJudge<Value>(
  options: JudgeOptions & {
    readonly schema: JudgeSchema<Value>;
    readonly scoreOf: (value: Value) => number | null | ScoredAnswer;
  },
): Judge {
  checkOptions(structuredOptions, options, "structuredJudge");
  const { ask, attempts, prices, schema, scoreOf } = options;
  jsonSchemaOf(schema);
  if (attempts !== undefined) checkAttempts(attempts);
  return async (values, { signal } = {}) => {
    const messages = messagesOf(options, values);
    const asking = askFor(ask, { messages, schema, attempts, signal });
    const { value, usage, asked } = await asking.catch((error: unknown) => {
      if (prices === undefined) throw error;
      throw withCount(error, priced(countIn(error), prices), signal);
    });
    const scored = scoreOf(value);
    const said = typeof scored === "object" && scored !== null ? scored : { score: scored };
    const count = { usage, asked };
    return { ...said, ...(prices === undefined ? count : priced(count, prices)) };
  };
}

function priced(
  { usage, asked }: JudgeCount,
  prices: Prices,
): JudgeCount & { readonly cost: number } {
  return { usage, asked, cost: priceOf(prices, { attempts: asked, usage }) };
}

export interface ScoredAnswer {
  readonly score: number | null;
  readonly [extra: string]: unknown;
}

function messagesOf(
  { system, prompt }: Pick<JudgeOptions, "system" | "prompt">,
  values: PromptValues,
): readonly JudgeMessage[] {
  const user = { role: "user", content: fillTemplate(prompt, values) } as const;
  if (system === undefined) return [user];
  return [{ role: "system", content: fillTemplate(system, values) }, user];
}
