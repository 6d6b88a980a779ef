/** The quickstart: public names of @rayling/trainer/quickstart, which loads the tiny policy. */

export { quickstart } from "./quickstart.ts";
export type { QuickstartPlan } from "./plan.ts";
export type {
  QuickstartOptions,
  QuickstartProgress,
  QuickstartResult,
  QuickstartRun,
  QuickstartTracking,
} from "./quickstart.ts";
