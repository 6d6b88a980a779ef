/**
 * Prompts with more tokens than a policy is to read: refused, left out, or cut. Only the policy
 * knows its tokens, so lengths come from a function (`Policy.promptLengths`), and text is cut: as
 * few characters as needed of the prompt's longest message, the last one of several.
 *
 * verl cuts token ids, and so may cut a chat template open; here the conversation stays whole
 * around the message that was cut.
 */

import { DatasetError } from "../errors.ts";
import type { ChatMessage } from "../policy/policy.ts";
import type { PromptRow } from "./prompt-row.ts";

/** Tokens of each prompt, in order. */
export type PromptLengths = (
  prompts: readonly (readonly ChatMessage[])[],
) => readonly number[] | Promise<readonly number[]>;

/**
 * verl `data.truncation`: an error, or the part that is cut off: the beginning, the end, the
 * middle.
 */
export type Truncation = "error" | "left" | "right" | "middle";

export interface LengthLimit {
  /** verl `data.max_prompt_length`, in tokens. */
  readonly maxPromptLength: number;
  readonly promptLengths: PromptLengths;
}

/** Prompts of one call of `promptLengths`: a message of some hundred KiB. */
const PROMPTS_AT_ONCE = 512;

/** Returns the rows that fit. */
export async function withoutOverlong(
  rows: readonly PromptRow[],
  limit: LengthLimit,
): Promise<readonly PromptRow[]> {
  const fits = await fitting(
    rows.map(({ rawPrompt }) => rawPrompt),
    limit,
  );
  return rows.filter((_, at) => fits[at]);
}

/**
 * Returns all rows, with prompts that do not fit cut. Throws DatasetError where `truncation` is
 * "error", or cutting is not enough.
 */
export async function truncated(
  rows: readonly PromptRow[],
  truncation: Truncation,
  limit: LengthLimit,
): Promise<readonly PromptRow[]> {
  const fits = await fitting(
    rows.map(({ rawPrompt }) => rawPrompt),
    limit,
  );
  const overlong = rows.filter((_, at) => !fits[at]);
  const [first] = overlong;
  if (first === undefined) return rows;
  if (truncation === "error") {
    throw new DatasetError(
      `the prompt of row ${first.index} has more than ${limit.maxPromptLength} tokens, as ${overlong.length} of ${rows.length} have: filter them (data.filter_overlong_prompts), cut them (data.truncation), or allow for more (data.max_prompt_length)`,
      {},
    );
  }
  const short = await shortest(overlong, truncation, limit);
  return rows.map((row) => short.get(row) ?? row);
}

/**
 * Finds the cuts by bisection, for all rows together: as many calls as the length of the longest
 * message has bits.
 */
async function shortest(
  rows: readonly PromptRow[],
  truncation: Exclude<Truncation, "error">,
  limit: LengthLimit,
): Promise<ReadonlyMap<PromptRow, PromptRow>> {
  const cuts = rows.map((row) => {
    const at = longestMessage(row.rawPrompt);
    const characters = Array.from(textOf(row.rawPrompt[at]));
    // Invariant: with `keep` characters it fits (checked first), with `above` it does not. Policies
    // may refuse an empty prompt.
    return { row, at, characters, keep: Math.min(1, characters.length), above: characters.length };
  });
  type Cut = (typeof cuts)[number];
  const cut = ({ row, at, characters }: Cut, keep: number): readonly ChatMessage[] =>
    row.rawPrompt.map((message, place) =>
      place === at && typeof message.content === "string"
        ? { ...message, content: kept(characters, keep, truncation) }
        : message,
    );
  const ask = (some: readonly Cut[], keep: (one: Cut) => number): Promise<readonly boolean[]> =>
    fitting(
      some.map((one) => cut(one, keep(one))),
      limit,
    );
  const fitsAtFirst = await ask(cuts, ({ keep }) => keep);
  const hopeless = cuts.find((_, at) => !fitsAtFirst[at]);
  if (hopeless !== undefined) {
    throw new DatasetError(
      `the prompt of row ${hopeless.row.index} has more than ${limit.maxPromptLength} tokens even with a single character of its longest message`,
      {},
    );
  }
  for (;;) {
    const open = cuts.filter(({ keep, above }) => above - keep > 1);
    if (open.length === 0) break;
    const middle = ({ keep, above }: Cut): number => Math.floor((keep + above) / 2);
    const fits = await ask(open, middle);
    for (const [place, one] of open.entries()) {
      if (fits[place] === true) one.keep = middle(one);
      else one.above = middle(one);
    }
  }
  return new Map(cuts.map((one) => [one.row, { ...one.row, rawPrompt: cut(one, one.keep) }]));
}

function kept(
  characters: readonly string[],
  keep: number,
  truncation: Exclude<Truncation, "error">,
): string {
  const from = characters.length - keep;
  if (truncation === "left") return characters.slice(from).join("");
  if (truncation === "right") return characters.slice(0, keep).join("");
  const head = Math.floor(keep / 2);
  return [...characters.slice(0, head), ...characters.slice(from + head)].join("");
}

/** The text that can be cut: a content that has parts stays whole. */
function textOf(message: Pick<ChatMessage, "content"> | undefined): string {
  return typeof message?.content === "string" ? message.content : "";
}

function longestMessage(prompt: readonly ChatMessage[]): number {
  let longest = 0;
  for (const [at, { content }] of prompt.entries()) {
    if (textOf({ content }).length >= textOf(prompt[longest]).length) longest = at;
  }
  return longest;
}

async function fitting(
  prompts: readonly (readonly ChatMessage[])[],
  { maxPromptLength, promptLengths }: LengthLimit,
): Promise<readonly boolean[]> {
  const fits: boolean[] = [];
  for (let start = 0; start < prompts.length; start += PROMPTS_AT_ONCE) {
    const asked = prompts.slice(start, start + PROMPTS_AT_ONCE);
    const lengths = await promptLengths(asked);
    if (lengths.length !== asked.length) {
      throw new DatasetError(
        `promptLengths gave ${lengths.length} lengths for ${asked.length} prompts`,
        {},
      );
    }
    for (const length of lengths) fits.push(length <= maxPromptLength);
  }
  return fits;
}
