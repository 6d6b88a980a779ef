/**
 * Code on other machines, for the sister packages: modules that are loaded by their paths. This
 * entry is internal and changes with any release.
 */
export { addModule } from "./host/code/registry.ts";
export { isOwnProcess } from "./host/own-process.ts";
export { hereOf } from "./shared/code-roots.ts";
