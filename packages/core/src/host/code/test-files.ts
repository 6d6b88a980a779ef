/**
 * Files of Node's test runner in hosts: a host loads them for their classes and functions, and runs none of their tests. Only where the driver has the test runner
 * loaded, because a hook has a price for every import.
 */
import nodeModule from "node:module";
import { fileURLToPath } from "node:url";
import { ownFile } from "../../shared/own-files.ts";

const testRunner = "node:test";

/** Asked in the driver. Node lists what it has loaded of its own. */
export function hasTests(): boolean {
  const { moduleLoadList } = process as { readonly moduleLoadList?: readonly string[] };
  return moduleLoadList?.includes("NativeModule test") ?? false;
}

/** In a host, before it loads a module of the user's. */
export function leaveTestsOut(): void {
  const noTests = ownFile("host/no-tests");
  nodeModule.registerHooks({
    resolve: (specifier, context, next) =>
      specifier === testRunner && !context.conditions.includes("require")
        ? { url: noTests.href, shortCircuit: true }
        : next(specifier, context),
  });
  // Node 22 gives no other module in the place of its own where that is required.
  const prototype = nodeModule.prototype as unknown as {
    require: (this: NodeJS.Module, id: string) => unknown;
  };
  const nodeRequire: (this: NodeJS.Module, id: string) => unknown = prototype.require;
  const loadNoTests = nodeModule.createRequire(noTests);
  prototype.require = function require(id): unknown {
    return id === testRunner
      ? loadNoTests(fileURLToPath(noTests))
      : Reflect.apply(nodeRequire, this, [id]);
  };
}
