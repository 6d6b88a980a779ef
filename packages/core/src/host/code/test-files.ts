/**
 * Test files of Node's test runner in hosts: a host loads them for their classes and functions, and
 * runs none of their tests. The hook is installed only if the driver has loaded the test runner,
 * because it slows every import down.
 */
import nodeModule from "node:module";
import { fileURLToPath } from "node:url";
import { ownFile } from "../../shared/own-files.ts";

const testRunner = "node:test";

/** Installs the hook in a host, before it loads a module of the user's. */
export function leaveTestsOut(): void {
  const noTests = ownFile("host/code/no-tests");
  nodeModule.registerHooks({
    resolve: (specifier, context, next) =>
      specifier === testRunner && !context.conditions.includes("require")
        ? { url: noTests.href, shortCircuit: true }
        : next(specifier, context),
  });
  // Node 22 cannot replace a built-in module that is required.
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
