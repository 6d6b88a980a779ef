/** Errors of asking a judge without a usable answer. */

import type { TokenUsage } from "../outcome.ts";

/**
 * No answer fits the schema. The loop scores the sample again, unless all answers were truncated.
 */
export class JudgeAnswerError extends Error {
  override readonly name = "JudgeAnswerError";
  readonly code: "MALFORMED_ANSWER" | "TRUNCATED_ANSWER";
  /** The last answer. */
  readonly text: string;
  /** How often it was asked. */
  readonly asked: number;
  /** The usage of all its answers, as far as it is known. */
  readonly usage: TokenUsage | undefined;

  constructor(
    problem: string,
    details: {
      readonly text?: string;
      readonly asked?: number;
      readonly usage?: TokenUsage | undefined;
      readonly isCutOff?: boolean;
    } = {},
  ) {
    const { text = "", asked = 1, usage, isCutOff = false } = details;
    const said = text === "" ? "" : `: ${JSON.stringify(text.slice(0, shown))}`;
    super(`The judge was asked ${asked} times, and its last answer ${problem}${said}`);
    this.code = isCutOff ? "TRUNCATED_ANSWER" : "MALFORMED_ANSWER";
    this.text = text;
    this.asked = asked;
    this.usage = usage;
  }
}

/** A prompt has a place for a value that is not given, or options of a judge do not go together. */
export class JudgePromptError extends TypeError {
  override readonly name = "JudgePromptError";
  readonly code = "JUDGE_PROMPT";
}

const shown = 200;
