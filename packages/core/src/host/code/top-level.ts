/**
 * The top level of a module runs again in each worker that loads it. This module warns, with the
 * line, of two effects that are meant to happen once: a server that starts, and a file that is
 * truncated.
 *
 * Node reports servers. It does not report files, so the functions that open them are replaced
 * while a module loads, and restored afterwards. The functions of `fs.promises` are replaced only
 * where the driver's program has loaded them before this package: they bring ten modules along,
 * which no host should load in vain.
 */
import { subscribe } from "node:diagnostics_channel";
import fs, { constants } from "node:fs";
import { syncBuiltinESMExports } from "node:module";
import { fileURLToPath } from "node:url";
import { currentLoading } from "../../caller/current.ts";
import { warn } from "../../shared/text/warning.ts";
import { threadSlot } from "../../shared/thread-slot.ts";
import { placeText, userPlace } from "./remote-call-place.ts";

export const ofTheDriver =
  "Keep what is the driver's own behind if (import.meta.main), or below await init(), which goes no further in a worker";

/** Whether the functions of `fs.promises` are watched, too. */
const filePromises: { areUsed: boolean } = threadSlot("file-promises", () => ({ areUsed: false }));

export function watchFilePromises(): void {
  filePromises.areUsed = true;
}

export function warnOfServers(): void {
  subscribe("tracing:net.server.listen:asyncStart", () => warnOf("a server is started"));
}

type Opens = (path: unknown, ...rest: readonly unknown[]) => unknown;
type Functions = Record<string, Opens>;

/** The place of the flags among the arguments, and their default. */
interface Flags {
  readonly at: number;
  readonly standard: string | number;
}

const written: Flags = { at: 2, standard: "w" };
const opened: Flags = { at: 1, standard: "r" };
const streamed: Flags = { at: 1, standard: "w" };
const cut: Flags = { at: -1, standard: "w" };

type Watched = readonly (readonly [Functions, Readonly<Record<string, Flags>>])[];

const ofCallbacks: Readonly<Record<string, Flags>> = {
  writeFileSync: written,
  writeFile: written,
  openSync: opened,
  open: opened,
  createWriteStream: streamed,
  truncateSync: cut,
  truncate: cut,
};

const ofPromises: Readonly<Record<string, Flags>> = {
  writeFile: written,
  open: opened,
  truncate: cut,
};

function watched(): Watched {
  const files = [fs as unknown as Functions, ofCallbacks] as const;
  return filePromises.areUsed
    ? [files, [fs.promises as unknown as Functions, ofPromises]]
    : [files];
}

/** Watches the files of one thread: the functions are replaced while at least one module loads. */
export class FileWatch {
  #loads = 0;
  #restore: () => void = () => undefined;
  /** Files that were warned of; a stream opens its file by another of these functions. */
  readonly #warned: Set<string> = new Set();

  /** @returns a function that ends the watch, once */
  begin(): () => void {
    if (this.#loads === 0) this.#restore = watchFiles((path) => this.#begunAnew(path));
    this.#loads += 1;
    let isOver = false;
    return () => {
      if (isOver) return;
      isOver = true;
      this.#loads -= 1;
      if (this.#loads === 0) this.#restore();
    };
  }

  #begunAnew(path: unknown): void {
    // Code that took the function while the module loaded may call it at any time.
    if (this.#loads === 0 || (typeof path !== "string" && !(path instanceof URL))) return;
    const name = path instanceof URL ? fileURLToPath(path) : path;
    // A file that does not exist yet belongs to nobody else.
    if (name.startsWith("/dev/") || this.#warned.has(name) || !fs.existsSync(name)) return;
    if (warnOf(`the file ${name} is truncated`)) this.#warned.add(name);
  }
}

function watchFiles(onBegunAnew: (path: unknown) => void): () => void {
  const undo: (() => void)[] = [];
  for (const [owner, functions] of watched()) {
    for (const [name, flags] of Object.entries(functions)) {
      const original = owner[name] as Opens;
      const watching: Opens = function watching(this: unknown, path, ...rest) {
        if (isTruncating(flags, [path, ...rest])) onBegunAnew(path);
        return Reflect.apply(original, this, [path, ...rest]);
      };
      owner[name] = Object.defineProperty(Object.assign(watching, original), "name", {
        value: name,
      });
      undo.push(() => {
        // A replacement that other code installed in the meantime stays.
        if (owner[name] === watching) owner[name] = original;
      });
    }
  }
  syncBuiltinESMExports();
  return () => {
    for (const one of undo) one();
    syncBuiltinESMExports();
  };
}

function isTruncating({ at, standard }: Flags, given: readonly unknown[]): boolean {
  const options = given[at];
  const named = options as { readonly flag?: unknown; readonly flags?: unknown } | null | undefined;
  const isObject = typeof options === "object" && options !== null;
  // An encoding or a callback may stand in the place of the flags.
  const isFlag = at === opened.at && standard === opened.standard && typeof options !== "function";
  const flag = isObject ? (named?.flag ?? named?.flags) : isFlag ? options : undefined;
  const chosen = flag ?? standard;
  if (typeof chosen === "number") return (chosen & constants.O_TRUNC) !== 0;
  return typeof chosen === "string" && chosen.startsWith("w");
}

/** Warns of effects of the user's own code while its module loads. */
function warnOf(what: string): boolean {
  const loading = currentLoading();
  if (loading === undefined || loading.isOver()) return false;
  const place = userPlace();
  if (place !== undefined && /[\\/]node_modules[\\/]/.test(place.moduleUrl)) return false;
  warn(
    `${place === undefined ? loading.moduleUrl : placeText(place)}: ${what} at the top level of a module, which runs in each worker that loads it. ${ofTheDriver}`,
  );
  return true;
}
