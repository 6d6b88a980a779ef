/**
 * slime's `--rm-type remote_rm --rm-url http://host:port/slime` (slime/rollout/rm_hub): one sample
 * a request, and the body of the answer is its reward: a number, or with `?reward=dict` an object
 * for `--reward-key score`.
 */

import { z } from "zod";
import { checked } from "../request-body.ts";
import { sentScore } from "./form.ts";
import type { Form } from "./form.ts";
import { promptSchema, rewardSample } from "./sample.ts";

const request = z.looseObject({
  prompt: promptSchema,
  response: z.string(),
  label: z.unknown().optional(),
});

const response = z.union([
  z.number().nullable(),
  z.looseObject({ score: z.number().nullable(), valid: z.boolean() }),
]);

export const slime: Form = {
  name: "slime",
  path: "/slime",
  summary: "slime's remote_rm",
  description:
    "The answer is the reward itself. With ?reward=dict it is { score, valid, ...extras }, for --reward-key score.",
  query: {
    reward: { description: "The answer is an object in place of a number.", values: ["dict"] },
  },
  request,
  response,
  read: (body) => {
    const { prompt, response: text, label = null, ...others } = checked(request, body);
    return [rewardSample({ response: text, groundTruth: label, prompt, extraInfo: others })];
  },
  write: ([answer], onInvalid, _, query) => {
    if (answer === undefined) return null;
    const score = sentScore(answer, onInvalid);
    if (query["reward"] !== "dict") return score;
    return { ...answer.extra, score, valid: answer.valid };
  },
};
