/**
 * `@rayling/config-tree/options`: tables of options, and the pages and files that come from them.
 * It is an entry of its own because zod takes time to load.
 */

export { readOptions } from "./read-options.ts";
export type { ReadRules } from "./read-options.ts";
export { optionsFile, optionsOf, optionsPage, optionsSchema } from "./table-pages.ts";
export type { OptionEntry } from "./table-pages.ts";
export { defaultOf, defaultsOf, entriesOf, nested, option, sectionOf } from "./table.ts";
export type { Frozen, OptionTable } from "./table.ts";
