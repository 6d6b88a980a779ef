/**
 * OpenRLHF's remote reward model (`--reward.remote_url http://host:port/get_reward`;
 * openrlhf/utils/agent.py, openrlhf/cli/serve_rm.py).
 *
 * A query is the prompt and the response as one text, with special tokens. The response is what
 * stands behind the prompt; where the prompt is not to be found there, the request is refused,
 * because a function would else read the question as an answer. `?response=query` gives it the
 * whole query, and `?eos=<text>` takes that text away from its end.
 */

import { HttpRefusal } from "@rayling/core/http";
import { z } from "zod";
import type { Answer } from "../answer.ts";
import { checked } from "../request-body.ts";
import { float, sentScore } from "./form.ts";
import type { Form, OnInvalid } from "./form.ts";
import { rewardSample } from "./sample.ts";

const request = z.looseObject({
  query: z.array(z.string()).min(1),
  prompts: z.array(z.unknown()),
  labels: z.array(z.unknown()).nullish(),
});

const response = z.object({
  rewards: z.array(z.number().nullable()).nullable(),
  scores: z.array(z.number().nullable()).nullable(),
  extra_logs: z.record(z.string(), z.array(z.number())),
});

export const openRlhf: Form = {
  name: "OpenRLHF",
  path: "/get_reward",
  summary: "OpenRLHF's remote reward model",
  description:
    "One score for each query. extra_logs has the numbers that all samples of the request have among their extras.",
  query: {
    eos: { description: "This text is taken away from the end of a response." },
    response: {
      description:
        "The reward function gets the whole query, and not what stands behind the prompt.",
      values: ["query"],
    },
  },
  request,
  response,
  read: (body, query) => {
    const { query: queries, prompts, labels: said } = checked(request, body);
    const labels = said ?? [];
    sameLength("prompts", prompts, queries);
    if (labels.length > 0) sameLength("labels", labels, queries);
    return queries.map((text, index) => {
      const prompt = prompts[index];
      const isWhole = query["response"] === "query" || typeof prompt !== "string";
      return rewardSample({
        response: withoutEnd(isWhole ? text : behind(text, prompt, index), query["eos"]),
        groundTruth: labels[index] ?? null,
        ...(typeof prompt === "string" ? { prompt } : {}),
        extraInfo: { query: text },
      });
    });
  },
  write: (answers, onInvalid) => {
    const scores = answers.map((answer) => sentScore(answer, onInvalid));
    // Its executor asks for one sample, and takes null for a reward that nobody gave.
    const sent = scores.length === 1 && scores[0] === null ? null : scores;
    return { rewards: sent, scores: sent, extra_logs: extraLogs(answers, onInvalid) };
  },
};

function sameLength(name: string, list: readonly unknown[], queries: readonly unknown[]): void {
  if (list.length === queries.length) return;
  throw new HttpRefusal(
    422,
    "invalid_request",
    `${name}: there are ${list.length} for ${queries.length} queries`,
  );
}

/** Throws HttpRefusal 422. */
function behind(query: string, prompt: string, index: number): string {
  const at = query.indexOf(prompt);
  if (at >= 0) return query.slice(at + prompt.length);
  throw new HttpRefusal(
    422,
    "prompt_not_in_query",
    `prompts[${index}] does not stand in query[${index}], so that nobody knows where the response begins: ` +
      "with ?response=query in the URL the reward function gets the whole query",
  );
}

function withoutEnd(text: string, end: string | undefined): string {
  return end !== undefined && text.endsWith(end) ? text.slice(0, -end.length) : text;
}

/** Names that its experiences have already. */
const taken: ReadonlySet<string> = new Set(["reward", "rewards", "score", "scores"]);

/** Each becomes a tensor of its trainer, which cannot do without one in some samples. */
function extraLogs(
  answers: readonly Answer[],
  onInvalid: OnInvalid,
): Readonly<Record<string, readonly unknown[]>> {
  if (answers.some(({ valid }) => !valid) && onInvalid === "null") return {};
  const [first] = answers;
  const names = Object.keys(first?.extra ?? {}).filter(
    (name) => !taken.has(name) && answers.every(({ extra }) => typeof extra[name] === "number"),
  );
  return Object.fromEntries(
    names.map((name) => [name, answers.map(({ extra }) => float(Number(extra[name])))]),
  );
}
