/**
 * Finds the class or function of a key by importing its module.
 *
 * The module may be the driver's own script. Everything that its import starts runs in the async
 * context of the import. Driver code that is reached there stops (api/ asks `currentLoading`), and
 * the import counts as finished at that point: a class that registered before is usable.
 */
import { statSync } from "node:fs";
import { flushCompileCache } from "node:module";
import { fileURLToPath } from "node:url";
import type { RemoteKey } from "../../rpc/remote-key.ts";
import {
  asLoading,
  currentLoading,
  DriverCodeStopped,
  type Loading,
} from "../../caller/current.ts";
import { driversText, hasCodeRoots, hereOf } from "../../shared/code-roots.ts";
import { show } from "../../shared/text/show.ts";
import { warn } from "../../shared/text/warning.ts";
import { RemoteNotRegisteredError, TaskCancelledError } from "../../shared/errors.ts";
import {
  closeCounts,
  type Found,
  findRemote,
  isCalledFromElsewhere,
  noteLoaded,
  placeOf,
  registersForOthers,
  unmappedPlace,
  whyMissing,
} from "./registry.ts";
import { FileWatch, ofTheDriver } from "./top-level.ts";
import { whyUnreadable } from "./unreadable.ts";
import { codeOf } from "../../shared/errors/thrown.ts";
import { timers } from "../../shared/machine/timers.ts";

type Loaded =
  | { readonly how: "complete" }
  | { readonly how: "stopped" }
  | { readonly how: "exited"; readonly code: number }
  | { readonly how: "failed"; readonly error: unknown };

export class Loader {
  readonly #modules: Map<string, Promise<Loaded>> = new Map();
  readonly #files: FileWatch = new FileWatch();

  constructor() {
    registersForOthers();
  }

  /**
   * Returns the class or function of a key.
   *
   * @throws RemoteNotRegisteredError when the module has no such `remote()` call; also any error of
   * the module while it loads
   */
  async find(key: RemoteKey): Promise<unknown> {
    // Code that the caller made up, as in "data:", does not run: remote() stands in a file.
    if (!key.moduleUrl.startsWith("file:")) {
      throw new RemoteNotRegisteredError(key.name, key.moduleUrl, "it is not in a file");
    }
    const unmapped = unmappedPlace(key);
    if (unmapped !== undefined) {
      throw new RemoteNotRegisteredError(key.name, key.moduleUrl, unmapped);
    }
    const known = findRemote(key);
    if (known !== undefined) return foundOf(key, known);
    const place = hereOf(key.moduleUrl);
    if (place === undefined || !isThere(place)) {
      throw new RemoteNotRegisteredError(
        key.name,
        key.moduleUrl,
        hasCodeRoots() ? notBrought : notHere,
      );
    }
    const loaded = await this.#load(key.moduleUrl, place);
    const found = findRemote(key);
    if (found !== undefined) return foundOf(key, found);
    if (loaded.how === "failed") {
      const { error } = loaded;
      const unreadable = whyUnreadable(key.moduleUrl, error);
      const why = unreadable === undefined ? undefined : driversText(unreadable);
      // The cause may be a function that no worker calls when it loads the module.
      const said = isCalledFromElsewhere(key) ? notLoaded(key, why ?? String(error)) : why;
      if (said === undefined) throw error;
      throw new RemoteNotRegisteredError(key.name, key.moduleUrl, said, { cause: error });
    }
    const why = loaded.how === "complete" ? whyMissing(key) : undefined;
    throw new RemoteNotRegisteredError(key.name, key.moduleUrl, why ?? reason(key, loaded));
  }

  #load(moduleUrl: string, place: string): Promise<Loaded> {
    let loading = this.#modules.get(moduleUrl);
    if (loading === undefined) {
      loading = load(moduleUrl, place, this.#files.begin());
      this.#modules.set(moduleUrl, loading);
    }
    return loading;
  }
}

/**
 * Silences the leftovers of stopped driver code: its rejections, its throwing timers, its
 * `process.exit`.
 *
 * @param onFatal called with an error that ends the host, before the end
 */
export function guardDriverCode(onFatal?: (error: unknown) => void): void {
  // Without these two listeners Node ends the thread; a listener of the user's own has precedence.
  process.on("unhandledRejection", (rejection) => {
    // Nobody awaits code that was stopped because its task was cancelled; like a cancelled task in
    // Python, it causes no report.
    if (rejection instanceof DriverCodeStopped || rejection instanceof TaskCancelledError) return;
    if (process.listenerCount("unhandledRejection") === 1) unhandled(rejection);
  });
  process.on("uncaughtException", (error) => {
    if (error instanceof DriverCodeStopped) return;
    if (process.listenerCount("uncaughtException") > 1) return;
    process.removeAllListeners("uncaughtException");
    onFatal?.(error);
    throw error;
  });
  const exit = process.exit.bind(process);
  process.exit = (code?: number | string | null): never => {
    // `main().catch(() => process.exit(1))` of a stopped driver must not end the worker.
    const loading = currentLoading();
    if (loading === undefined) return exit(code);
    loading.onExit(Number(code ?? process.exitCode ?? 0));
    throw new DriverCodeStopped(loading.moduleUrl);
  };
}

/**
 * Does what Node does without a listener, by its flag --unhandled-rejections: in the other modes
 * Node itself has warned or thrown before it asks, or says nothing.
 */
function unhandled(rejection: unknown): void {
  const mode = lastMode([
    ...(process.env["NODE_OPTIONS"] ?? "").split(/[\s"]+/),
    ...process.execArgv,
  ]);
  if (mode === "throw") throw rejection;
  // Documents of Node add an "s" to its name.
  if (!mode.startsWith("warn-with-error-code")) return;
  process.exitCode = 1;
  const text =
    rejection instanceof Error ? (rejection.stack ?? rejection.message) : show(rejection);
  warn(`a promise was rejected, and nobody handled that: ${text}`);
}

function lastMode(flags: readonly string[]): string {
  const at = flags.findLastIndex((flag) => modeFlag.test(flag));
  if (at < 0) return "throw";
  return flags[at]?.split("=")[1] ?? flags[at + 1] ?? "throw";
}

const modeFlag = /^--unhandled[-_]rejections(=|$)/;

function load(moduleUrl: string, place: string, onEnd: () => void): Promise<Loaded> {
  let isOver = false;
  return new Promise<Loaded>((resolve) => {
    // The rest of the running turn may still register: driver code often stands in a function that
    // is called further up.
    const stopAfterTurn = (loaded: Loaded): void => {
      closeCounts();
      timers.setImmediate(() => end(loaded));
    };
    const end = (loaded: Loaded, exports?: Exports): void => {
      if (isOver) return;
      isOver = true;
      onEnd();
      noteLoaded(moduleUrl, exports);
      // Without this, Node writes what it has compiled when a host ends, and until then others
      // compile the same: 70 ms for a start in place of 42. It takes 10 us if there is nothing new.
      flushCompileCache();
      resolve(loaded);
    };
    const loading: Loading = {
      moduleUrl,
      onDriverCode: () => stopAfterTurn({ how: "stopped" }),
      onExit: (code) => stopAfterTurn({ how: "exited", code }),
      isOver: () => isOver,
    };
    asLoading(loading, () => import(place) as Promise<Exports>).then(
      (exports) => end({ how: "complete" }, exports),
      (error: unknown) => {
        if (error instanceof DriverCodeStopped) stopAfterTurn({ how: "stopped" });
        else end({ how: "failed", error });
      },
    );
  });
}

type Exports = Readonly<Record<string, unknown>>;

function foundOf({ name, moduleUrl }: RemoteKey, found: Found): unknown {
  if ("target" in found) return found.target;
  throw new RemoteNotRegisteredError(name, moduleUrl, found.why);
}

function isThere(place: string): boolean {
  try {
    return statSync(fileURLToPath(place)).isFile();
  } catch (error) {
    // Node reports every other problem when it imports the file.
    return codeOf(error) !== "ENOENT";
  }
}

const notHere =
  "there is no such file on the machine of the worker. Where the project is not, runtimeEnv: { workingDir: true } brings it";
const notBrought =
  "its module is not part of the code that was brought to this machine. Import it before the first actor or task is started there, or give the folder that it is in as runtimeEnv.workingDir";

const atTopLevel =
  "Call remote() once at the top level of the file that defines it, not inside a function or a condition, or name what its module exports: remote(target, { module: import.meta.url, exportName })";

const outsideChunk =
  "It stands in a chunk of Next.js, which runs none of its modules when a worker imports it. Put it into a file that is not bundled, and import that by its URL behind /* turbopackIgnore: true */ and /* webpackIgnore: true */";

function isInChunkOfNext(key: RemoteKey): boolean {
  return "site" in key && key.site.includes("/.next/server/");
}

function notLoaded(key: RemoteKey, why: string): string {
  return `its remote() call${placeOf(key)} stands in a function, and the module that called that does not load in a worker: ${why}. ${atTopLevel}`;
}

function reason(key: RemoteKey, loaded: Exclude<Loaded, { readonly how: "failed" }>): string {
  if (loaded.how === "exited") {
    return `its module called process.exit(${loaded.code}) while the worker loaded it, before its remote() call. What a module does at its top level runs in each worker, too. ${ofTheDriver}`;
  }
  return loaded.how === "stopped"
    ? `driver code (init, get, put, a .remote() call) was reached before its remote() call${placeOf(key)}. Move the remote() call above it, or to a module of its own that imports no driver (in a bundle: to a chunk of its own)`
    : `its remote() call${placeOf(key)} did not run while the module loaded. ${isInChunkOfNext(key) ? outsideChunk : atTopLevel}`;
}
