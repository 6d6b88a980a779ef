/**
 * Reads an endpoint's limits from the headers of an answer: from a refusal (429) without
 * retry-after the time until there is room again; from a success how much is left, and until when.
 * Headers: `x-ratelimit-reset-requests` and `-tokens` (OpenAI's, durations as Go writes them:
 * "6m0s", "20ms"), `x-ratelimit-reset` and `ratelimit-reset` (seconds from now, a Unix time, or a
 * date, depending on the service). Times are those of the endpoint's clock, whose time is the
 * answer's `date`: this machine's clock may be wrong.
 *
 * Left out: the structured `ratelimit` of later IETF drafts, and Anthropic's headers, which come
 * with a retry-after.
 */

/** For each kind of limit: the header of its reset, and the header of its remainder. */
const kinds: readonly (readonly [reset: string, remaining: string, what: "requests" | "tokens"])[] =
  [
    ["x-ratelimit-reset-requests", "x-ratelimit-remaining-requests", "requests"],
    ["x-ratelimit-reset-tokens", "x-ratelimit-remaining-tokens", "tokens"],
    ["x-ratelimit-reset", "x-ratelimit-remaining", "requests"],
    ["ratelimit-reset", "ratelimit-remaining", "requests"],
  ];

type HeaderOf = (name: string) => string | undefined;

/** How much may be used until it is as it was at first. */
export interface AnnouncedLimit {
  readonly remaining: number;
  readonly resetMs: number;
}

export interface AnnouncedLimits {
  readonly requests?: AnnouncedLimit;
  readonly tokens?: AnnouncedLimit;
  /** The endpoint wants no call for so long. */
  readonly retryAfterMs?: number;
}

/** A longer time is no wait: a limit of a day is the longest that services have. */
const longestMs = 86_400_000;

/**
 * Returns the time until all exhausted limits are reset; undefined: the headers do not say.
 *
 * @param headerOf a header by its name in lower case
 * @param localMs the time of this machine, for dates of an answer without `date`
 */
export function resetAfterMs(headerOf: HeaderOf, localMs: number): number | undefined {
  const nowMs = answeredAtMs(headerOf, localMs);
  const waits = kinds.flatMap(([reset, remaining]) => {
    // A limit without a remainder may be the exhausted one.
    if (Number(headerOf(remaining) ?? 0) > 0) return [];
    return timeMs(headerOf(reset)?.trim() ?? "", nowMs) ?? [];
  });
  const plausible = waits.filter((ms) => ms > 0 && ms <= longestMs);
  return plausible.length === 0 ? undefined : Math.max(...plausible);
}

/**
 * Returns the limits that a successful answer announces; undefined: none. Of several headers for
 * one limit the one with the least left counts.
 *
 * @param headerOf a header by its name in lower case
 * @param localMs the time of this machine, for dates of an answer without `date`
 */
export function announcedIn(headerOf: HeaderOf, localMs: number): AnnouncedLimits | undefined {
  const nowMs = answeredAtMs(headerOf, localMs);
  const announced: { -readonly [Key in keyof AnnouncedLimits]: AnnouncedLimits[Key] } = {};
  for (const [reset, left, what] of kinds) {
    const text = headerOf(left)?.trim() ?? "";
    const remaining = text === "" ? Number.NaN : Number(text);
    const resetMs = timeMs(headerOf(reset)?.trim() ?? "", nowMs) ?? 0;
    if (!(remaining >= 0) || resetMs <= 0 || resetMs > longestMs) continue;
    const known = announced[what];
    if (known === undefined || remaining < known.remaining)
      announced[what] = { remaining, resetMs };
  }
  const retryAfterMs = retryAfterIn(headerOf, localMs);
  if (retryAfterMs !== undefined) announced.retryAfterMs = retryAfterMs;
  return Object.keys(announced).length === 0 ? undefined : announced;
}

/**
 * Reads `retry-after-ms` (OpenAI), or `retry-after` in seconds, as Go writes durations ("2s"), or
 * as a date. If an answer has several, the longest counts.
 */
export function retryAfterIn(headerOf: HeaderOf, localMs: number): number | undefined {
  const nowMs = answeredAtMs(headerOf, localMs);
  const exact = longestOf(headerOf("retry-after-ms"), (text) =>
    text === "" ? undefined : Number(text),
  );
  return exact ?? longestOf(headerOf("retry-after"), (text) => waitMs(text, nowMs));
}

/** Returns when the endpoint answered, by its own clock where it says so. */
function answeredAtMs(headerOf: HeaderOf, localMs: number): number {
  const date = Date.parse(headerOf("date") ?? "");
  return Number.isNaN(date) ? localMs : date;
}

/** Values of a header that came several times stand in a row; dates have a comma of their own. */
function longestOf(
  header: string | undefined,
  msOf: (text: string) => number | undefined,
): number | undefined {
  if (header === undefined) return undefined;
  const values = header.match(/[A-Za-z]{3,9},[^,]+|[^,]+/g) ?? [];
  const waits = values
    .flatMap((text) => msOf(text.trim()) ?? [])
    .filter((ms) => Number.isFinite(ms) && ms >= 0);
  return waits.length === 0 ? undefined : Math.min(Math.max(...waits), Number.MAX_SAFE_INTEGER);
}

function waitMs(text: string, nowMs: number): number | undefined {
  if (text === "") return undefined;
  const seconds = Number(text);
  if (!Number.isNaN(seconds)) return 1000 * seconds;
  const duration = durationMs(text.toLowerCase());
  if (duration !== undefined) return duration;
  const date = Date.parse(text);
  return Number.isNaN(date) ? undefined : Math.max(0, date - nowMs);
}

/** Times of today are above that in seconds, and above a hundred times that in milliseconds. */
const unixTime = 1e9;

function timeMs(text: string, nowMs: number): number | undefined {
  if (text === "") return undefined;
  const value = Number(text);
  if (value >= 100 * unixTime) return value - nowMs;
  if (value >= unixTime) return 1000 * value - nowMs;
  if (Number.isFinite(value)) return 1000 * value;
  const duration = durationMs(text);
  if (duration !== undefined) return duration;
  const date = Date.parse(text);
  return Number.isNaN(date) ? undefined : date - nowMs;
}

const unitMs: Readonly<Record<string, number>> = {
  h: 3_600_000,
  m: 60_000,
  s: 1000,
  ms: 1,
  us: 1e-3,
  µs: 1e-3,
  ns: 1e-6,
};

/** Reads a duration as Go writes it: "1h2m3.5s". */
function durationMs(text: string): number | undefined {
  let ms = 0;
  durationPart.lastIndex = 0;
  while (durationPart.lastIndex < text.length) {
    const [, count, unit = ""] = durationPart.exec(text) ?? [];
    if (count === undefined) return undefined;
    ms += Number(count) * (unitMs[unit] ?? 0);
  }
  return ms;
}

const durationPart = /(\d+(?:\.\d+)?)(h|ms|m|s|us|µs|ns)/y;
