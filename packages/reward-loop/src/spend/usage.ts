/**
 * The cost of a judge's answer in tokens: `usage` among a score's extra info, in the names of
 * OpenAI's APIs, Anthropic's, DeepSeek's or the AI SDK's.
 *
 * Input counts all of the prompt, including cached tokens; output counts all generated tokens,
 * including hidden reasoning, whichever of the two an API counts apart.
 */

import type { SampleOutcome, TokenUsage } from "../outcome.ts";

/**
 * Undefined where nothing is said of it. The AI SDK passes on what the endpoint said, as `raw`: it
 * may know of more.
 */
export function usageOf(extraInfo: Readonly<Record<string, unknown>>): TokenUsage | undefined {
  const { usage } = extraInfo;
  if (!isObject(usage)) return undefined;
  const { raw } = usage;
  return larger(isObject(raw) ? accountIn(raw) : undefined, accountIn(usage));
}

function accountIn(usage: ExtraInfo): TokenUsage | undefined {
  const said = firstIn(usage);
  const cached =
    said("cachedInputTokens", "prompt_cache_hit_tokens") ??
    inside(usage, inputDetails, "cached_tokens", "cacheReadTokens");
  const reasoning =
    said("reasoningTokens", "reasoning_tokens") ??
    inside(usage, outputDetails, "reasoning_tokens", "reasoningTokens");
  const cacheRead = said("cache_read_input_tokens");
  const inputTokens = said("prompt_tokens") ?? anthropicInput(usage) ?? said("inputTokens");
  const generated = said("completion_tokens", "output_tokens", "outputTokens");
  const total = said("total_tokens", "totalTokens");
  if (inputTokens === undefined && generated === undefined && total === undefined) {
    return undefined;
  }
  const known = (inputTokens ?? 0) + (generated ?? 0);
  // xAI and Gemini count reasoning beside the output: the total says so.
  const isApart = reasoning !== undefined && total !== undefined && total >= known + reasoning;
  const outputTokens =
    generated === undefined || !isApart || inputTokens === undefined
      ? generated
      : generated + reasoning;
  const sum = Math.max(total ?? 0, (inputTokens ?? 0) + (outputTokens ?? 0));
  const output = outputTokens ?? (inputTokens === undefined ? 0 : Math.max(0, sum - inputTokens));
  const input = inputTokens ?? Math.max(0, sum - output);
  return {
    inputTokens: input,
    outputTokens: output,
    totalTokens: sum,
    ...part("cachedInputTokens", cached ?? cacheRead, input),
    ...part("reasoningTokens", reasoning, output),
  };
}

/**
 * Anthropic counts what its cache read and wrote beside the input. LiteLLM repeats both counts
 * beside OpenAI's `prompt_tokens`, which include them.
 */
function anthropicInput(usage: ExtraInfo): number | undefined {
  const said = firstIn(usage);
  const input = said("input_tokens");
  if (input === undefined) return undefined;
  const written = said("cache_creation_input_tokens") ?? 0;
  return input + (said("cache_read_input_tokens") ?? 0) + written;
}

type ExtraInfo = Readonly<Record<string, unknown>>;

/** The fields of an outcome that tell its usage. */
type Answered = (
  | { readonly valid: true; readonly rewardExtraInfo: ExtraInfo }
  | { readonly valid: false; readonly error: { readonly rewardExtraInfo?: ExtraInfo } }
) & { readonly used?: TokenUsage };

/**
 * Returns the usage of the last attempt, valid or not: the function's own or the client's,
 * whichever is more.
 */
export function lastUsageOf(outcome: Answered): TokenUsage | undefined {
  const said = usageOf((outcome.valid ? outcome : outcome.error).rewardExtraInfo ?? {});
  return larger(said, outcome.used);
}

/**
 * Returns the usage of all attempts, as far as it is known, with that of all components. A cached
 * outcome used nothing: what its extra info says was paid before.
 */
export function wholeUsageOf(outcome: SampleOutcome): TokenUsage | undefined {
  const { usageBefore, cached, components } = outcome;
  if (cached === true) return usageBefore;
  const last =
    components === undefined
      ? lastUsageOf(outcome)
      : Object.values(components).map(wholeUsageOf).reduce(together, undefined);
  return together(usageBefore, last);
}

/** Two accounts of the same calls: the one that knows of more. */
export function larger(
  one: TokenUsage | undefined,
  other: TokenUsage | undefined,
): TokenUsage | undefined {
  if (one === undefined || other === undefined) return one ?? other;
  return other.totalTokens > one.totalTokens ? other : one;
}

/** Returns the usage that one account has beyond the other one. */
export function beyond(
  one: TokenUsage | undefined,
  other: TokenUsage | undefined,
): TokenUsage | undefined {
  if (one === undefined || other === undefined) return one;
  if (one.totalTokens <= other.totalTokens) return undefined;
  const more = (name: keyof TokenUsage): number =>
    Math.max(0, (one[name] ?? 0) - (other[name] ?? 0));
  return {
    inputTokens: more("inputTokens"),
    outputTokens: more("outputTokens"),
    totalTokens: more("totalTokens"),
    cachedInputTokens: more("cachedInputTokens"),
    reasoningTokens: more("reasoningTokens"),
  };
}

/** The sum of the usage of different calls. */
export function together(
  one: TokenUsage | undefined,
  other: TokenUsage | undefined,
): TokenUsage | undefined {
  if (one === undefined || other === undefined) return one ?? other;
  const sumOf = (name: "cachedInputTokens" | "reasoningTokens"): Partial<TokenUsage> =>
    one[name] === undefined && other[name] === undefined
      ? {}
      : { [name]: (one[name] ?? 0) + (other[name] ?? 0) };
  return {
    inputTokens: one.inputTokens + other.inputTokens,
    outputTokens: one.outputTokens + other.outputTokens,
    totalTokens: one.totalTokens + other.totalTokens,
    ...sumOf("cachedInputTokens"),
    ...sumOf("reasoningTokens"),
  };
}

/** OpenAI's chat and responses, the AI SDK. */
const inputDetails = [
  "prompt_tokens_details",
  "input_tokens_details",
  "inputTokenDetails",
] as const;
const outputDetails = [
  "completion_tokens_details",
  "output_tokens_details",
  "outputTokenDetails",
] as const;

function inside(
  usage: ExtraInfo,
  details: readonly string[],
  ...names: readonly string[]
): number | undefined {
  for (const one of details) {
    const detail = usage[one];
    const count = isObject(detail) ? firstIn(detail)(...names) : undefined;
    if (count !== undefined) return count;
  }
  return undefined;
}

function firstIn(counts: ExtraInfo): (...names: readonly string[]) => number | undefined {
  return (...names) => {
    for (const name of names) {
      const count = countOf(counts[name]);
      if (count !== undefined) return count;
    }
    return undefined;
  };
}

/** A part is no more than its whole, whatever the endpoint says. */
function part(
  name: "cachedInputTokens" | "reasoningTokens",
  count: number | undefined,
  whole: number,
): Partial<TokenUsage> {
  return count === undefined ? {} : { [name]: Math.min(count, whole) };
}

function isObject(value: unknown): value is ExtraInfo {
  return typeof value === "object" && value !== null;
}

/** A count as text is paid for like others. */
function countOf(value: unknown): number | undefined {
  const count = typeof value === "string" && /^\d+$/.test(value) ? Number(value) : value;
  return typeof count === "number" && Number.isFinite(count) && count >= 0 ? count : undefined;
}
