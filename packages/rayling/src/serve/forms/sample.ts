/**
 * The server's own wire form: samples by verl's names, as `rayling score` reads them from a file.
 */

import type { RewardSample } from "@rayling/reward-manager-registry";
import { textOf } from "@rayling/reward-loop/rows";
import { z } from "zod";

/** Names the data where a sample does not. */
const assumedSource = "serve";

export type Prompt = string | readonly Message[];

interface Message {
  readonly role: string;
  /** A message that only calls tools has none. */
  readonly content?: unknown;
}

export interface WireSample {
  readonly id?: string | undefined;
  readonly response: string;
  readonly ground_truth?: unknown;
  readonly data_source?: string | null | undefined;
  readonly prompt?: Prompt | null | undefined;
  readonly extra_info?: Readonly<Record<string, unknown>> | null | undefined;
  readonly response_length?: number | undefined;
}

const message = z.looseObject({ role: z.string(), content: z.unknown().optional() });

/** A conversation, or one question. */
export const promptSchema: z.ZodType<Prompt> = z.union([z.string(), z.array(message)], {
  error: "it must be a text, or a list of messages of { role, content }",
});

export const sampleSchema: z.ZodType<WireSample> = z.strictObject({
  id: z
    .string()
    .min(1)
    .max(256)
    .optional()
    .meta({ description: "Idempotency key of the sample: asked again, it gets the same answer." }),
  response: z.string().meta({ description: "What the model said." }),
  ground_truth: z
    .unknown()
    .optional()
    .meta({ description: "Given to the reward function as it is." }),
  data_source: z
    .string()
    .min(1)
    .nullish()
    .meta({ description: "Which data set the prompt is from." }),
  prompt: promptSchema.nullish().meta({ description: "A text, or messages of { role, content }." }),
  extra_info: z
    .record(z.string(), z.unknown())
    .nullish()
    .meta({ description: "Given to the reward function, with the last question of the prompt." }),
  response_length: z
    .int()
    .min(0)
    .optional()
    .meta({ description: "Tokens of the response, for a manager that counts them." }),
});

export const answerSchema: z.ZodType = z.object({
  score: z.number().nullable(),
  valid: z.boolean(),
  error: z
    .object({
      code: z.string(),
      message: z.string(),
      class: z.enum(["infrastructure", "rate-limit", "timeout", "data", "user-code"]),
      retry_after_ms: z.number().optional(),
    })
    .nullable(),
  extra: z.record(z.string(), z.unknown()),
  attempts: z.int(),
  latency_ms: z.number(),
  version: z.string().optional(),
  cost: z.number().optional(),
  answered_by: z.string().optional(),
  extra_dropped: z.string().optional(),
  id: z.string().optional(),
  replayed: z.literal(true).optional(),
});

export const batchSchema: z.ZodType<{ readonly samples: readonly WireSample[] }> = z.strictObject({
  samples: z.array(sampleSchema).min(1),
});

export const batchAnswerSchema: z.ZodType = z.object({ outcomes: z.array(answerSchema) });

export function sampleOf(wire: WireSample): RewardSample {
  const {
    response,
    ground_truth: groundTruth = null,
    prompt,
    response_length: responseLength,
  } = wire;
  const { data_source: dataSource, extra_info: extraInfo } = wire;
  return rewardSample({
    response,
    groundTruth,
    dataSource: dataSource ?? undefined,
    prompt: prompt ?? undefined,
    extraInfo: extraInfo ?? {},
    ...(responseLength === undefined ? {} : { responseLength }),
  });
}

interface SampleFields {
  readonly response: string;
  readonly groundTruth: unknown;
  readonly dataSource?: string | undefined;
  readonly prompt?: Prompt | undefined;
  readonly extraInfo: Readonly<Record<string, unknown>>;
  readonly responseLength?: number;
}

/**
 * Makes a sample of the parts that a wire form has found; `question` stands among the extra info,
 * as in `rayling score`.
 */
export function rewardSample({
  prompt,
  dataSource,
  extraInfo,
  ...fields
}: SampleFields): RewardSample {
  const question = extraInfo["question"] ?? lastOf(prompt) ?? "";
  return {
    ...fields,
    dataSource: dataSource ?? assumedSource,
    ...(dataSource === undefined ? { isSourceAssumed: true } : {}),
    extraInfo: { ...extraInfo, question },
    ...(typeof prompt === "object" ? { rawPrompt: prompt.map(withContent) } : {}),
  };
}

function withContent(one: Message): Message & { readonly content: unknown } {
  return { content: null, ...one };
}

/** Returns the last message of the prompt, where that is a text. */
function lastOf(prompt: SampleFields["prompt"]): string | undefined {
  if (typeof prompt === "string") return prompt;
  return textOf(prompt?.at(-1)?.content);
}
