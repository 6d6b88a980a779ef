/**
 * Code on other machines, for the sister packages: modules that are loaded by their paths. This
 * entry is internal and changes with any release.
 */
export { guardDriverCode, Loader } from "./host/code/loader.ts";
export { addModule } from "./host/code/registry.ts";
export type { RemoteKey } from "./rpc/remote-key.ts";
export { isOwnProcess } from "./host/own-process.ts";
export { type CodeRoot, hereOf, setCodeRoots } from "./shared/code-roots.ts";
