/**
 * `@rayling/config-tree`: configurations with the semantics of Hydra and OmegaConf.
 */

export { ConfigError } from "./config-error.ts";
export { composeConfig } from "./compose.ts";
export type { ComposedConfig, ComposedFile } from "./compose.ts";
export { configNames, readYamlFile } from "./files.ts";
export type { ConfigSearch } from "./files.ts";
export { nearestOf } from "./nearest.ts";
export { parseOverride, parseValue } from "./grammar.ts";
export type { Override } from "./grammar.ts";
export { applyOverrides } from "./overrides.ts";
export type { OverrideRules } from "./overrides.ts";
export { resolveReferences } from "./references.ts";
export type { ReferenceRules } from "./references.ts";
export { isTree, keysOf, merged, valueAt, withoutValue, withValue } from "./tree.ts";
export type { ConfigTree, ConfigValue } from "./tree.ts";
