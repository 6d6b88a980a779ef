/** What a judge's answer cost in tokens: `usage` among a score's extra info, in the names of OpenAI's API or of the AI SDK. */

export interface TokenUsage {
  readonly inputTokens: number;
  readonly outputTokens: number;
  readonly totalTokens: number;
}

/** Undefined where nothing is said of it. */
export function usageOf(extraInfo: Readonly<Record<string, unknown>>): TokenUsage | undefined {
  const { usage } = extraInfo;
  if (typeof usage !== "object" || usage === null) return undefined;
  const parts = usage as Readonly<Record<string, unknown>>;
  const inputTokens = countOf(
    parts["prompt_tokens"] ?? parts["input_tokens"] ?? parts["inputTokens"],
  );
  const outputTokens = countOf(
    parts["completion_tokens"] ?? parts["output_tokens"] ?? parts["outputTokens"],
  );
  const total = countOf(parts["total_tokens"] ?? parts["totalTokens"]);
  if (inputTokens === undefined && outputTokens === undefined && total === undefined) {
    return undefined;
  }
  const sum = total ?? (inputTokens ?? 0) + (outputTokens ?? 0);
  const output = outputTokens ?? (inputTokens === undefined ? 0 : Math.max(0, sum - inputTokens));
  return {
    inputTokens: inputTokens ?? Math.max(0, sum - output),
    outputTokens: output,
    totalTokens: sum,
  };
}

type ExtraInfo = Readonly<Record<string, unknown>>;

/** What an outcome says of it. */
type Answered =
  | { readonly valid: true; readonly rewardExtraInfo: ExtraInfo }
  | { readonly valid: false; readonly error: { readonly rewardExtraInfo?: ExtraInfo } };

/** What its function said last, whatever came of it. */
export function lastUsageOf(outcome: Answered): TokenUsage | undefined {
  return usageOf((outcome.valid ? outcome : outcome.error).rewardExtraInfo ?? {});
}

/** Of all its tries, as far as they said so. */
export function wholeUsageOf(
  outcome: Answered & { readonly usageBefore?: TokenUsage },
): TokenUsage | undefined {
  return together(outcome.usageBefore, lastUsageOf(outcome));
}

export function together(
  one: TokenUsage | undefined,
  other: TokenUsage | undefined,
): TokenUsage | undefined {
  if (one === undefined || other === undefined) return one ?? other;
  return {
    inputTokens: one.inputTokens + other.inputTokens,
    outputTokens: one.outputTokens + other.outputTokens,
    totalTokens: one.totalTokens + other.totalTokens,
  };
}

function countOf(value: unknown): number | undefined {
  return typeof value === "number" && Number.isFinite(value) && value >= 0 ? value : undefined;
}
