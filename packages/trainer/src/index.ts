/** Public names of @rayling/trainer. Nothing happens on import. */

export type {
  AdvantageBatch,
  AdvantageEstimator,
  Advantages,
  AdvantageSettings,
} from "./algorithms/advantages/batch.ts";
export { createAdvantageRegistry } from "./algorithms/advantages/registry.ts";
export type { AdvantageRegistry } from "./algorithms/advantages/registry.ts";
export type { GroupId } from "./algorithms/groups.ts";
export { TrainerInputError } from "./errors.ts";
