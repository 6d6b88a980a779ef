/**
 * Reads an answer of OpenAI's chat completions, from any client: its text, its finish reason, its
 * usage. An answer without a usable text is an EndpointError with that usage, never an empty text.
 */

import { isRecord } from "@rayling/reward-manager-registry/values";
import { EndpointError } from "./endpoint-error.ts";

export interface ChatUsage {
  readonly prompt_tokens: number;
  readonly completion_tokens: number;
  readonly total_tokens: number;
}

export interface ChatAnswer {
  /**
   * The joined texts where the content has parts. Empty where the model calls tools without a text.
   */
  readonly text: string;
  readonly finishReason: string | undefined;
  /** Return it among your score's extra info, as `usage`: limits and costs are settled by it. */
  readonly usage: ChatUsage | undefined;
  /** The whole answer, as it came. */
  readonly raw: unknown;
}

/**
 * Why an answer may end without a text although nothing failed: the tokens were used up, or the
 * model or a filter refused.
 */
export type SilentEnd = "length" | "content_filter";

/**
 * Reads a completion. Throws EndpointError: `HTTP_STATUS` or `ENDPOINT_ERROR` for an error within
 * the answer, at its top or in its first choice; `TRUNCATED_ANSWER`, `REFUSED_ANSWER`, and
 * `MALFORMED_ANSWER` for one without a text. The loop retries the last one, and the first by its
 * status.
 *
 * @param raw the answer's JSON, or the SDK's object for it
 * @param url of the request, for the message
 * @param again ends that are worth another attempt, as MALFORMED_ANSWER is. Default: none
 */
export function chatAnswerOf(
  raw: unknown,
  url: string = "the endpoint",
  again: readonly SilentEnd[] = [],
): ChatAnswer {
  const answer = objectOf(raw);
  const { usage } = answer;
  const [choice] = listOf(answer["choices"]).map(objectOf);
  const failure =
    answer["object"] === "error" ? answer : (answer["error"] ?? choice?.["error"] ?? undefined);
  const fail = (problem: string, code: string, status?: number): never => {
    throw new EndpointError(url, problem, { code, status, body: textOf(raw), usage });
  };
  if (failure !== undefined) {
    const status = statusOf(failure);
    return status === undefined
      ? fail("answered with an error", "ENDPOINT_ERROR")
      : fail(`answered with an error of status ${status}`, "HTTP_STATUS", status);
  }
  const message = objectOf(choice?.["message"]);
  const finish = choice?.["finish_reason"];
  const finishReason = typeof finish === "string" ? finish : undefined;
  if (finishReason === "error") return fail("answered with an error", "ENDPOINT_ERROR");
  const text = textIn(message["content"]);
  const says = text !== undefined && text.trim() !== "";
  const isRefused = !says && (finishReason === "content_filter" || isRefusal(message));
  const end = isRefused ? "content_filter" : finishReason;
  if (!says && (end === "length" || end === "content_filter")) {
    const problem = isRefused ? "refused to answer" : "used up its tokens and said nothing";
    const code = isRefused ? "REFUSED_ANSWER" : "TRUNCATED_ANSWER";
    return fail(problem, again.includes(end) ? "MALFORMED_ANSWER" : code);
  }
  const calls = listOf(message["tool_calls"]).length > 0;
  if (!says && !calls) {
    const problem =
      text === undefined ? "without choices[0].message.content" : "with an empty text";
    return fail(`answered ${problem}`, "MALFORMED_ANSWER");
  }
  return { text: text ?? "", finishReason, usage: usage as ChatUsage | undefined, raw };
}

/**
 * Returns a text, or the joined texts of its parts; other parts (reasoning, an image) are ignored.
 * Undefined: there is no text.
 */
function textIn(content: unknown): string | undefined {
  if (typeof content === "string") return content;
  if (!Array.isArray(content)) return undefined;
  const texts = content.flatMap((part: unknown) => {
    if (typeof part === "string") return [part];
    const { type = "text", text } = objectOf(part);
    return (type === "text" || type === "output_text") && typeof text === "string" ? [text] : [];
  });
  return texts.length === 0 ? undefined : texts.join("");
}

function isRefusal({ refusal, content }: Readonly<Record<string, unknown>>): boolean {
  if (typeof refusal === "string" && refusal !== "") return true;
  return listOf(content).some((part) => typeof objectOf(part)["refusal"] === "string");
}

/**
 * Returns a numeric field, or the status that an error word of OpenAI stands for. Undefined:
 * neither is there.
 */
function statusOf(failure: unknown): number | undefined {
  const { code, status, type } = objectOf(failure);
  for (const said of [code, status]) {
    const number = typeof said === "string" && said !== "" ? Number(said) : said;
    const isStatus = typeof number === "number" && Number.isInteger(number);
    if (isStatus && number >= 400 && number <= 599) return number;
  }
  const words = [code, type, status].filter((one) => typeof one === "string").join(" ");
  return statuses.find(([pattern]) => pattern.test(words))?.[1];
}

const statuses: readonly (readonly [RegExp, number])[] = [
  [/insufficient_quota|billing/i, 402],
  [/rate_?limit|too_many_requests|resource_exhausted/i, 429],
  [/invalid_request|context_length|bad_?request|invalid_argument|content_policy/i, 400],
  [/authentication|invalid_api_key|unauthenticated/i, 401],
  [/permission/i, 403],
  [/not_found/i, 404],
  [/timeout|deadline/i, 504],
  [/overloaded|unavailable/i, 503],
  [/server_error|internal/i, 500],
];

function objectOf(value: unknown): Readonly<Record<string, unknown>> {
  return isRecord(value) ? value : {};
}

function listOf(value: unknown): readonly unknown[] {
  return Array.isArray(value) ? value : [];
}

/** An SDK's object may hold what JSON cannot carry. */
function textOf(raw: unknown): string {
  try {
    return JSON.stringify(raw) ?? String(raw);
  } catch {
    return "";
  }
}
