/**
 * `@rayling/config-tree`: configurations with the semantics of Hydra and OmegaConf.
 */

export { ConfigError } from "./config-error.ts";
export { composeConfig } from "./hydra/compose.ts";
export type { ComposedConfig, ComposedFile } from "./hydra/compose.ts";
export { configNames, readYamlFile } from "./hydra/files.ts";
export type { ConfigSearch } from "./hydra/files.ts";
export { nearestOf } from "./nearest.ts";
export { parseOverride, parseValue } from "./hydra/grammar.ts";
export type { Override } from "./hydra/grammar.ts";
export { applyOverrides } from "./hydra/overrides.ts";
export type { OverrideRules } from "./hydra/overrides.ts";
export { resolveReferences } from "./hydra/references.ts";
export type { ReferenceRules } from "./hydra/references.ts";
export { isTree, keysOf, merged, treeOf, valueAt, withoutValue, withValue } from "./tree.ts";
export type { ConfigTree, ConfigValue } from "./tree.ts";
export { yamlText, yamlValue } from "./yaml.ts";
