/** Kinds of values that several keys share. */

import { z } from "zod";
import { klPenaltyKinds } from "../../algorithms/kl.ts";
import { lossAggModes } from "../../algorithms/losses/aggregation.ts";

export const whole = z.number().int();
export const count = whole.min(1);
export const fromZero = whole.min(0);
export const share = z.number().min(0).max(1);
export const amount = z.number().min(0);
export const positive = z.number().positive();
export const text = z.string().min(1);
export const flag = z.boolean();
/** -1, or a number of steps or samples. */
export const countOrNot = whole.refine(
  (value) => value === -1 || value >= 1,
  "must be -1 or at least 1",
);
/** verl's -1, and 0, which it takes for the same. */
export const frequency = whole.min(-1);
/** Settings of something else, by its names. */
export const kwargs = z.record(z.string(), z.unknown());

export const lossAggMode = z.enum(lossAggModes);
export const klPenalty = z.enum(klPenaltyKinds);
