/**
 * Rows of data in the shapes that trainers and evaluations write: public names of
 * @rayling/reward-loop/rows. Loaded by itself.
 */

export { isConversation, textOf } from "./conversation.ts";
export type { Conversation } from "./conversation.ts";
export { missing } from "./named-values.ts";
export { isRow, valueAt } from "./value-at.ts";
export type { Row } from "./value-at.ts";
export { assumedSource, readPrompt } from "./prompt-row.ts";
export type { FoundPrompt, PromptKeys } from "./prompt-row.ts";
export { isRollout, readRollout } from "./rollout-row.ts";
export type { RolloutRow, RowKeys } from "./rollout-row.ts";
export type { RowWords } from "./row-errors.ts";
