/**
 * A resources server of NeMo-Gym, as its agents ask one (nemo_gym/base_resources_server.py,
 * responses_api_agents/simple_agent): `/verify` with the row of the data set and the model's
 * response in the form of OpenAI's Responses API, answered by the same with a `reward`.
 *
 * The ground truth is the first of `ground_truth`, `expected_answer`, `answer` and `label` that the
 * row or its `verifier_metadata` has, or what `?ground_truth=<field>` names. All other fields of
 * the row are extra info. A sample that could not be scored is, with `--on-invalid null`, a row
 * that NeMo-Gym itself marks as failed (`_ng_failure_class`, nemo_gym/judge.py): its rollouts go to
 * the file of failures and into no figure.
 */

import { HttpRefusal } from "@rayling/core/http";
import type { RewardSample } from "@rayling/reward-manager-registry";
import { z } from "zod";
import { checked, fieldsOf } from "../request-body.ts";
import { sentScore } from "./form.ts";
import type { Form } from "./form.ts";
import type { Query } from "./query.ts";
import { promptSchema, rewardSample } from "./sample.ts";

const part = z.looseObject({ type: z.string(), text: z.unknown().optional() });
const item = z.looseObject({
  type: z.string().optional(),
  role: z.string().optional(),
  content: z.union([z.string(), z.array(part)]).nullish(),
});

const request = z.looseObject({
  responses_create_params: z.looseObject({ input: z.unknown() }),
  response: z.looseObject({ output: z.array(item) }),
});

const response = z.looseObject({
  reward: z.number(),
  responses_create_params: z.unknown(),
  response: z.unknown(),
});

export const nemoGym: Form = {
  name: "NeMo-Gym",
  path: "/verify",
  summary: "verify of a NeMo-Gym resources server",
  description:
    "The row comes back with its reward, and with the extras of the score function that it has no field of.",
  query: {
    ground_truth: { description: "The field of the row that is the ground truth." },
  },
  request,
  response,
  read: (body, query) => [sampleOf(checked(request, body), query)],
  write: ([answer], onInvalid, body) => {
    const row = fieldsOf(body);
    const { extra = {}, valid, error } = answer ?? {};
    const reward = answer === undefined ? null : sentScore(answer, onInvalid);
    if (reward !== null) return { ...extra, valid, ...row, reward };
    return {
      ...row,
      reward: 0,
      _ng_failure_class: "judge_failed",
      _ng_failure_judge_error: `${error?.code}: ${error?.message}`,
    };
  },
};

type Row = z.infer<typeof request>;

function sampleOf(row: Row, query: Query): RewardSample {
  const { responses_create_params: params, response: answer, ...others } = row;
  const prompt = promptSchema.safeParse(params.input);
  const { ground_truth: named } = query;
  const places = [others, fieldsOf(others["verifier_metadata"])];
  const truth = (named === undefined ? usual : [named])
    .flatMap((name) => places.map((place) => place[name]))
    .find((one) => one !== undefined);
  if (named !== undefined && truth === undefined) {
    const problem = `?ground_truth: neither the row nor its verifier_metadata has a field ${named}`;
    throw new HttpRefusal(422, "invalid_request", problem);
  }
  return rewardSample({
    response: textOf(answer.output),
    groundTruth: truth ?? null,
    ...(prompt.success ? { prompt: prompt.data } : {}),
    extraInfo: { ...others, output: answer.output },
  });
}

const usual: readonly string[] = ["ground_truth", "expected_answer", "answer", "label"];

/** As `output_text` of OpenAI's SDK has it: all that the model said, one after the other. */
function textOf(output: Row["response"]["output"]): string {
  const messages = output.filter(({ type = "message", role }) => {
    return type === "message" && (role ?? "assistant") === "assistant";
  });
  return messages
    .flatMap(({ content }) =>
      typeof content === "string"
        ? [content]
        : (content ?? []).map(({ type, text }) => (type === "output_text" ? text : "")),
    )
    .filter((text) => typeof text === "string")
    .join("");
}
