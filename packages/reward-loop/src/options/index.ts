/**
 * Public names of @rayling/reward-loop/options: the tables of options. They load no other module,
 * so that flags and pages can be made of them.
 */

export { defaultWorkers, loopOptions } from "./functions.ts";
export { onFailureOptions } from "./policies.ts";
export { helpOf } from "./help.ts";
export { isAllowed, optionAt, withDefaults } from "./read.ts";
export type { Form, Option, OptionTable } from "./table.ts";
export { defaultWords, wordsOf } from "./describe-options.ts";
