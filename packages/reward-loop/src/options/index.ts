/** The tables of options, for `@rayling/reward-loop/options`: by itself, as it loads nothing, so that flags and pages are made of it. */

export { defaultWorkers, loopOptions } from "./functions.ts";
export { onFailureOptions } from "./policies.ts";
export { helpOf } from "./help.ts";
export { isAllowed, optionAt, withDefaults } from "./read.ts";
export type { Form, Option, OptionTable } from "./table.ts";
export { defaultWords, wordsOf } from "./words.ts";
