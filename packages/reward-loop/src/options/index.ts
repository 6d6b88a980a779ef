/**
 * Public names of @rayling/reward-loop/options: the tables of options. They load no other module,
 * so that flags and pages can be made of them.
 */

export { defaultWorkers, loopOptions } from "./defaults/functions.ts";
export { onFailureOptions } from "./defaults/policies.ts";
export { helpOf } from "./help.ts";
export { isAllowed, optionAt, withDefaults } from "./read.ts";
export type { Form, Option, OptionTable } from "./table.ts";
export { defaultWords, wordsOf } from "./describe-options.ts";
