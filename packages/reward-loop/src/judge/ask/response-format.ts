/** The form of the answer in a request of OpenAI's chat completions. */

import type { JudgeQuestion } from "./ask.ts";

/**
 * "json_schema": the answer fits the schema (OpenAI, vLLM, SGLang); "json_object": it is JSON;
 * "text": no constraint, for servers that know neither.
 */
export type AnswerFormat = "json_schema" | "json_object" | "text";

export function responseFormatOf(
  { name, schema }: Pick<JudgeQuestion, "name" | "schema">,
  format: AnswerFormat = "json_schema",
): object {
  if (format === "text") return {};
  if (format === "json_object") return { response_format: { type: format } };
  return { response_format: { type: format, json_schema: { name, schema, strict: true } } };
}
