/**
 * Error classes that both sides have: those that a module with `remote()` calls exports.
 *
 * The throwing side looks the class up among the exports of the modules it loaded, the catching side among its own. A module that is still
 * running (a driver at its top-level await) has no exports to look at: such an error keeps its class name and fields and comes back as
 * its built-in base.
 */
import type { ErrorClasses, ErrorOrigin } from "../protocol/failure.ts";
import { moduleExports } from "./registry.ts";

export const errorClasses: ErrorClasses = {
  findOrigin(errorClass): ErrorOrigin | undefined {
    if (builtIn.has(errorClass)) return undefined;
    for (const [moduleUrl, exports] of moduleExports()) {
      for (const [exportName, value] of Object.entries(exports)) {
        if (value === errorClass) return { moduleUrl, exportName };
      }
    }
    return undefined;
  },
  findClass(origin) {
    const found = new Map(moduleExports()).get(origin.moduleUrl)?.[origin.exportName];
    return typeof found === "function" && found.prototype instanceof Error ? found : undefined;
  },
};

const builtIn: ReadonlySet<unknown> = new Set([
  Error,
  TypeError,
  RangeError,
  SyntaxError,
  ReferenceError,
]);
