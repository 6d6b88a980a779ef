/**
 * Finds the class or function of a key by importing its module.
 *
 * The module may be the driver's own script. Everything its import starts runs in the async context of the import; driver code reached
 * there stops (api/ asks `currentLoading`), and the import counts as finished at that point: a class registered before it is usable.
 */
import { statSync } from "node:fs";
import { fileURLToPath } from "node:url";
import type { RemoteKey } from "../rpc/directory.ts";
import { asLoading, currentLoading, DriverCodeStopped } from "../caller/current.ts";
import { hasCodeRoots, hereOf } from "../shared/code-roots.ts";
import { RemoteNotRegisteredError, TaskCancelledError } from "../shared/errors.ts";
import { registeredTarget } from "./registry.ts";

type Loaded =
  | { readonly how: "complete" }
  | { readonly how: "stopped" }
  | { readonly how: "failed"; readonly error: unknown };

export class Loader {
  readonly #modules: Map<string, Promise<Loaded>> = new Map();

  /** @throws RemoteNotRegisteredError when the module has no such `remote()` call; whatever the module throws when it fails to load */
  async find(key: RemoteKey): Promise<unknown> {
    const known = registeredTarget(key);
    if (known !== undefined) return known;
    // Code of the caller's own making, as in "data:", is not run: remote() stands in a file.
    if (!key.moduleUrl.startsWith("file:")) {
      throw new RemoteNotRegisteredError(key.name, key.moduleUrl, "it is not in a file");
    }
    const place = hereOf(key.moduleUrl);
    if (place === undefined || !isThere(place)) {
      throw new RemoteNotRegisteredError(
        key.name,
        key.moduleUrl,
        hasCodeRoots() ? notBrought : notHere,
      );
    }
    const loaded = await this.#load(key.moduleUrl, place);
    const target = registeredTarget(key);
    if (target !== undefined) return target;
    if (loaded.how === "failed") throw loaded.error;
    throw new RemoteNotRegisteredError(key.name, key.moduleUrl, reason(loaded.how));
  }

  #load(moduleUrl: string, place: string): Promise<Loaded> {
    let loading = this.#modules.get(moduleUrl);
    if (loading === undefined) {
      loading = load(moduleUrl, place);
      this.#modules.set(moduleUrl, loading);
    }
    return loading;
  }
}

/**
 * Silences what stopped driver code leaves behind: its rejections, its throwing timers, its `process.exit`.
 * @param onFatal hears of an error that ends the host, before it does
 */
export function guardDriverCode(onFatal?: (error: unknown) => void): void {
  // Without these two, Node's own answer is to end the thread; a listener of the user's own is another answer.
  process.on("unhandledRejection", (rejection) => {
    // Nobody awaits what was stopped because its task was cancelled: as a cancelled task of Python's, it disturbs nobody.
    if (rejection instanceof DriverCodeStopped || rejection instanceof TaskCancelledError) return;
    if (process.listenerCount("unhandledRejection") === 1) throw rejection;
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
    // `main().catch(() => process.exit(1))` of a stopped driver must not take the worker with it.
    const loading = currentLoading();
    if (loading !== undefined) throw new DriverCodeStopped(loading.moduleUrl);
    return exit(code);
  };
}

function load(moduleUrl: string, place: string): Promise<Loaded> {
  return new Promise((resolve) => {
    // The rest of the running turn may still register: driver code often stands in a function called further up.
    const onDriverCode = (): void => void setImmediate(() => resolve({ how: "stopped" }));
    asLoading({ moduleUrl, onDriverCode }, () => import(place)).then(
      () => resolve({ how: "complete" }),
      (error: unknown) =>
        resolve(error instanceof DriverCodeStopped ? { how: "stopped" } : { how: "failed", error }),
    );
  });
}

function isThere(place: string): boolean {
  try {
    return statSync(fileURLToPath(place)).isFile();
  } catch (error) {
    // Whatever else is wrong with it, Node says when it imports it.
    return (error as NodeJS.ErrnoException).code !== "ENOENT";
  }
}

const notHere =
  "there is no such file on the machine of the worker. Where the project is not, runtimeEnv: { workingDir: true } brings it";
const notBrought =
  "its module is not part of the code that was brought to this machine. Import it before the first actor or task is started there, or give the folder that it is in as runtimeEnv.workingDir";

function reason(how: "complete" | "stopped"): string {
  return how === "stopped"
    ? "driver code (init, get, put, a .remote() call) was reached before its remote() call. Move the remote() call above it, or to a module of its own that imports no driver"
    : "its remote() call did not run while the module loaded. Call remote() once at the top level of the file that defines it, not inside a function, a condition or a helper of another file";
}
