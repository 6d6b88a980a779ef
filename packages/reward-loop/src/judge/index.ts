/**
 * Public names of @rayling/reward-loop/judge, for score functions that ask a judge; loads nothing
 * of the loop.
 */

export type { Ask, JudgeAnswer, JudgeMessage, JudgeQuestion } from "./ask/ask.ts";
export { askByAiSdk } from "./ask/ask-by-ai-sdk.ts";
export type { GenerateText } from "./ask/ask-by-ai-sdk.ts";
export { askByChat } from "./ask/ask-by-chat.ts";
export type { AskByChatOptions } from "./ask/ask-by-chat.ts";
export { askByOpenAI } from "./ask/ask-by-openai.ts";
export type { AskByOpenAIOptions, OpenAIClient } from "./ask/ask-by-openai.ts";
export { cannotTell, choiceJudge } from "./choice.ts";
export type { ChoiceOptions } from "./choice.ts";
export { structuredJudge } from "./judge.ts";
export type { Judge, JudgeCall, JudgeOptions, JudgeScore, ScoredAnswer } from "./judge.ts";
export { JudgeAnswerError, JudgePromptError } from "./judge-error.ts";
export { jsonIn } from "./answer/json-in.ts";
export { majorityOf } from "./majority.ts";
export { pairwiseJudge } from "./pairwise.ts";
export type { AnswerFormat } from "./ask/response-format.ts";
export { rubricJudge } from "./rubric.ts";
export type { Criterion, RubricOptions } from "./rubric.ts";
export { askFor } from "./structured.ts";
export type { JudgeSchema, Structured, StructuredOptions } from "./structured.ts";
export { fillTemplate } from "./template.ts";
export type { PromptValues } from "./template.ts";
export type { ScoreInput } from "@rayling/reward-manager-registry";
