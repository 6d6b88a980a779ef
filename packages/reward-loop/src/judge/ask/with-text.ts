/** Every client of a judge returns an answer with a text, or an error that says why not. */

import { EndpointError } from "../../client/endpoint-error.ts";
import type { JudgeAnswer } from "./ask.ts";

/** Throws EndpointError with the answer's usage for one that says nothing, as a call of tools. */
export function withText(answer: JudgeAnswer, url: string): JudgeAnswer {
  if (answer.text.trim() !== "") return answer;
  const { finishReason = "", usage } = answer;
  const [code, problem] = silences[finishReason] ?? silence;
  throw new EndpointError(url, problem, { code, usage });
}

type Silence = readonly [code: string, problem: string];

const silence: Silence = ["MALFORMED_ANSWER", "answered without a text"];
const refused: Silence = ["REFUSED_ANSWER", "refused to answer"];

/** In the words of OpenAI's API, and of the AI SDK. */
const silences: Readonly<Partial<Record<string, Silence>>> = {
  length: ["TRUNCATED_ANSWER", "used up its tokens and said nothing"],
  content_filter: refused,
  "content-filter": refused,
  error: ["ENDPOINT_ERROR", "answered with an error"],
};
