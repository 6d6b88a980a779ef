/**
 * `@rayling/config-tree/options`: tables of options, and the pages and files that come from them.
 * It is an entry of its own because zod takes time to load.
 */

export { readOptions } from "./table/read-options.ts";
export type { ReadRules } from "./table/read-options.ts";
export { optionsFile, optionsOf, optionsPage, optionsSchema } from "./table/table-pages.ts";
export type { OptionEntry } from "./table/table-pages.ts";
export { defaultOf, defaultsOf, entriesOf, nested, option, sectionOf } from "./table/table.ts";
export type { Frozen, OptionTable } from "./table/table.ts";
