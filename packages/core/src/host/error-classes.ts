/**
 * Error classes that both sides have: those that a module with `remote()` calls exports.
 *
 * The throwing side looks the class up among the exports of the modules it loaded; the catching side imports the same module, which is
 * loaded already. A module that is still running (a driver at its top-level await) has no exports to look at: such an error keeps its
 * class name and fields and comes back as its built-in base.
 */
import type { ErrorClasses, ErrorOrigin, FailureData } from "../protocol/failure.ts";
import { hasModule } from "./registry.ts";

type Exports = Readonly<Record<string, unknown>>;

export function errorClasses(): ErrorClasses & { readonly addModule: (url: string, exports: Exports) => void } {
  const modules: Map<string, Exports> = new Map();
  const origins: Map<unknown, ErrorOrigin> = new Map();
  const tried: Map<string, Promise<void>> = new Map();

  const addModule = (moduleUrl: string, exports: Exports): void => {
    modules.set(moduleUrl, exports);
    for (const [exportName, value] of Object.entries(exports)) {
      if (isErrorClass(value) && !origins.has(value)) origins.set(value, { moduleUrl, exportName });
    }
  };

  const load = (moduleUrl: string): Promise<void> => {
    let loading = tried.get(moduleUrl);
    if (loading === undefined) {
      // A module that has finished loading answers within this turn; one that has not is not waited for.
      const turn = new Promise<undefined>((resolve) => setImmediate(resolve, undefined));
      loading = Promise.race([import(moduleUrl) as Promise<Exports>, turn]).then(
        (exports) => {
          if (exports === undefined) tried.delete(moduleUrl);
          else addModule(moduleUrl, exports);
        },
        () => undefined,
      );
      tried.set(moduleUrl, loading);
    }
    return loading;
  };

  return {
    addModule,
    findOrigin: (errorClass) => origins.get(errorClass),
    findClass: (origin) => {
      const found = modules.get(origin.moduleUrl)?.[origin.exportName];
      return isErrorClass(found) ? found : undefined;
    },
    prepare: (failure) => {
      const missing = modulesOf(failure).filter((url) => !modules.has(url) && hasModule(url));
      return missing.length === 0 ? undefined : Promise.all(missing.map(load)).then(() => undefined);
    },
  };
}

function isErrorClass(value: unknown): value is { readonly prototype: Error } {
  return typeof value === "function" && value.prototype instanceof Error;
}

function modulesOf(failure: FailureData): string[] {
  const own = failure.origin === undefined ? [] : [failure.origin.moduleUrl];
  const cause =
    failure.cause !== undefined && !("value" in failure.cause) ? modulesOf(failure.cause) : [];
  return [...own, ...cause, ...(failure.errors ?? []).flatMap(modulesOf)];
}
