/** The beginning of a response, as a list shows it. */
import type { RewardRecord } from "@rayling/reward-loop/reward-log";

/** Characters of a response that a row shows. */
const shownCharacters = 160;

export function shownResponse(response: RewardRecord["response"]): string | null {
  if (response === undefined || response === null) return null;
  if (typeof response !== "string") return `${response.length} tokens`;
  if (response.length <= shownCharacters) return response;
  // A copy: a part of a text would keep all of it in memory.
  return String(JSON.parse(JSON.stringify(response.slice(0, shownCharacters))));
}
