/** Metrics of a validation (`val-core/*`) in the words of people. */

export interface CoreMetricWords {
  readonly source: string;
  /** "accuracy", or the variable itself; with the kind, where it is another than mean@1. */
  readonly what: string;
  /** Whether a value is a share, which people read in percent. */
  readonly isShare: boolean;
}

/** Splits `val-core/openai/gsm8k/acc/mean@4`. Undefined for another name. */
export function coreMetricWords(name: string): CoreMetricWords | undefined {
  const [, source, variable, kind] = /^val-core\/(.+)\/([^/]+)\/(\w+@.+)$/.exec(name) ?? [];
  if (source === undefined || variable === undefined || kind === undefined) return undefined;
  const isShare = variable === "acc";
  const what = isShare ? "accuracy" : variable;
  return { source, what: kind === "mean@1" ? what : `${what} ${kind}`, isShare };
}

/**
 * Returns the metric in words: "accuracy", or "accuracy on gsm8k" where `all` are of several data
 * sources.
 *
 * @param all names of all metrics; others than core metrics do not count
 */
export function coreMetricText(name: string, all: readonly string[] = [name]): string {
  const words = coreMetricWords(name);
  if (words === undefined) return name;
  const sources = new Set(all.flatMap((one) => coreMetricWords(one)?.source ?? []));
  return sources.size > 1 ? `${words.what} on ${words.source}` : words.what;
}

/** Returns a value of the metric: 52.8 %, or 0.5278 for a reward, which has a unit of its own. */
export function coreMetricValue(name: string, value: number): string {
  return coreMetricWords(name)?.isShare === true
    ? `${(100 * value).toFixed(1)} %`
    : value.toFixed(4);
}
