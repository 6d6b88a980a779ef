/**
 * Texts of a sample that a reward log keeps for people: the prompt, the response, and a ground
 * truth that is short. Pictures and sounds are named, and not kept.
 */

import type { RewardSample } from "@rayling/reward-manager-registry";
import { fieldOf, itemsIn } from "@rayling/reward-manager-registry/values";

/** Texts of a sample that a reward log stores for people. */
export interface SampleTexts {
  /**
   * The conversation that was answered, else the `question` or `prompt` of extraInfo; null: the
   * sample has none.
   */
  readonly prompt: string | readonly PromptMessage[] | null;
  /** Its token ids where it has no text; null: it is neither. */
  readonly response: string | readonly number[] | null;
  /** Null where it is longer than 1,000 characters as JSON: tests of programs have millions. */
  readonly groundTruth: unknown;
}

/** One message of a conversation, as a text. */
export interface PromptMessage {
  /** The speaker. */
  readonly role: string;
  /** The text; pictures and sounds are only named. */
  readonly content: string;
}

const longestTruth = 1000;

/** Leaves out what cannot be read: a sample may be anything. */
export function textsOf(sample: RewardSample): SampleTexts {
  return {
    prompt: orNull(() => promptOf(sample)),
    response: orNull(() => responseOf(sample.response)),
    groundTruth: orNull(() => shortOf(sample.groundTruth)),
  };
}

function orNull<Value>(read: () => Value): Value | null {
  try {
    return read();
  } catch {
    return null;
  }
}

function promptOf({ rawPrompt, extraInfo }: RewardSample): SampleTexts["prompt"] {
  if (rawPrompt !== undefined) {
    return rawPrompt.map(({ role, content }) => ({ role, content: contentText(content) }));
  }
  const asked = extraInfo?.["question"] ?? extraInfo?.["prompt"];
  return typeof asked === "string" ? asked : null;
}

/** A text, or a list of parts: { type: "text", text } and others. */
function contentText(content: unknown): string {
  if (typeof content === "string") return content;
  if (!Array.isArray(content)) return "";
  return content.map(partText).join("\n");
}

function partText(part: unknown): string {
  if (typeof part === "string") return part;
  const text = fieldOf(part, "text");
  const type = fieldOf(part, "type");
  if (typeof text === "string") return text;
  return typeof type === "string" ? `[${type}]` : "[?]";
}

function responseOf(response: unknown): SampleTexts["response"] {
  if (typeof response === "string") return response;
  const ids = itemsIn(response);
  if (ids === undefined) return null;
  return ids.every((id): id is number => Number.isFinite(id)) ? ids : null;
}

/** Returns the truth as it is: the log writes as text the values that JSON cannot carry. */
function shortOf(truth: unknown): unknown {
  const text = JSON.stringify(truth, (_, value: unknown) =>
    typeof value === "bigint" ? String(value) : value,
  );
  return text !== undefined && text.length <= longestTruth ? structuredClone(truth) : null;
}
