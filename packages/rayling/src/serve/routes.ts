/**
 * Every path of the server, and what it is for: the guard, the router, the OpenAPI document and the
 * page are made of this one table.
 */

import { z } from "zod";
import { figuresRequest } from "./forms/nemo-gym-figures.ts";
import type { QueryParameters } from "./forms/query.ts";
import { nemoGym } from "./forms/nemo-gym.ts";
import type { Form } from "./forms/form.ts";
import { openRlhf } from "./forms/openrlhf.ts";
import { answerSchema, batchAnswerSchema, batchSchema, sampleSchema } from "./forms/sample.ts";
import { slime } from "./forms/slime.ts";

export const forms: readonly Form[] = [openRlhf, slime, nemoGym];

export interface Route {
  readonly path: string;
  readonly method: "GET" | "POST";
  readonly summary: string;
  readonly description?: string;
  /** Asks for scores: refused while the server ends, and noted in the log. */
  readonly isScoring?: true;
  /** Parameters in its URL. */
  readonly query?: QueryParameters;
  readonly request?: z.ZodType;
  /** Undefined for a text. */
  readonly response?: z.ZodType;
}

export const routes: readonly Route[] = [
  {
    path: "/score",
    method: "POST",
    summary: "Score one sample",
    description:
      "Idempotency-Key (or id in the sample): the same key gets the same answer. A sample that cannot be scored is answered with 200, score null, valid false and an error.",
    isScoring: true,
    request: sampleSchema,
    response: answerSchema,
  },
  {
    path: "/score/batch",
    method: "POST",
    summary: "Score many samples",
    description:
      "Accept: application/x-ndjson gives each outcome as a line when it is there, with its index; else they come together and in order. Idempotency-Key stands for all samples of the batch that have no id.",
    isScoring: true,
    request: batchSchema,
    response: batchAnswerSchema,
  },
  ...forms.map(({ path, summary, description, query, request, response }) => ({
    path,
    method: "POST" as const,
    summary,
    description,
    isScoring: true as const,
    query,
    request,
    response,
  })),
  {
    path: "/seed_session",
    method: "POST",
    summary: "Begins a session of a NeMo-Gym resources server: there is nothing to begin",
    response: z.object({}),
  },
  {
    path: "/aggregate_metrics",
    method: "POST",
    summary: "Figures of all rollouts, for a NeMo-Gym agent",
    request: figuresRequest,
  },
  {
    path: "/reverify_mode",
    method: "GET",
    summary: "Tells NeMo-Gym that verify needs no session",
    response: z.literal("stateless"),
  },
  { path: "/healthz", method: "GET", summary: "Whether the process lives" },
  {
    path: "/readyz",
    method: "GET",
    summary: "Whether it takes samples: 503 while it ends or fails",
  },
  { path: "/metrics", method: "GET", summary: "For Prometheus" },
  { path: "/openapi.json", method: "GET", summary: "This interface as OpenAPI 3.1" },
  { path: "/docs", method: "GET", summary: "This interface as a page" },
];

/**
 * NeMo-Gym puts the rollout in front of the path where it observes
 * (nemo_gym/rollout_correlation.py).
 */
export const rolloutPrefix: RegExp = /^\/ng-rollout\/[A-Za-z0-9][A-Za-z0-9._-]*(?=\/)/;

/** Returns the path of the route that the path means, if that asks for scores. */
export function scoringPath(path: string): string | undefined {
  const own = path.replace(rolloutPrefix, "");
  return routes.find((route) => route.isScoring === true && route.path === own)?.path;
}
