/**
 * `remote`: makes an actor class of a class, or a task of a function, identified by the place of
 * this call in its module.
 */
import { isAbsolute } from "node:path";
import { pathToFileURL } from "node:url";
import { noteTarget, registerRemote } from "../../host/code/registry.ts";
import type { ExportName } from "../../rpc/remote-key.ts";
import { driversOf } from "../../shared/code-roots.ts";
import { InvalidOptionError } from "../../shared/errors.ts";
import { isClass, isGenerator } from "../../shared/methods.ts";
import { show } from "../../shared/text/show.ts";
import type { Constructor } from "../handle-types.ts";
import { type ActorClass, actorClass } from "./actor-class.ts";
import { checkedActor, checkedTask } from "./option-checks.ts";
import type { ActorOptions, TaskOptions } from "./options.ts";
import { type RemoteFunction, remoteFunction } from "./remote-function.ts";

/**
 * The module that a worker imports to find a class or function, and the export's name: the class or
 * function itself, or the result of `remote`. It is needed where the place of the `remote()` call
 * does not identify the remote: in a loop over external data, in a decorator, in a library that
 * calls it for others.
 */
export interface RemoteName {
  /** The module: its `import.meta.url`, or its path. */
  readonly module?: string | URL;
  /** The name of the export. */
  readonly exportName?: string;
}

/** The `methods` of a class's options. */
type MethodsOf<Options> = Options extends { readonly methods: infer Methods } ? Methods : unknown;

/**
 * Makes an actor class of a class, or a task of a function. Call it at the top level of a module,
 * above any driver code: workers import the module to find the class.
 *
 * @throws InvalidOptionError for a bad option; RemoteNotRegisteredError when the call stands in no
 * file
 */
export function remote<Class extends Constructor, const Options extends ActorOptions>(
  target: Class,
  options?: Options & RemoteName,
): ActorClass<Class, MethodsOf<Options>>;
export function remote<
  Task extends (...args: never[]) => unknown,
  const Options extends TaskOptions,
>(target: Task, options?: Options & RemoteName): RemoteFunction<Task, Options>;
export function remote(
  target: unknown,
  given: ActorOptions & TaskOptions & RemoteName = {},
): unknown {
  if (typeof target !== "function") {
    throw new InvalidOptionError(
      "target",
      `remote takes a class or a function, not ${show(target)}`,
    );
  }
  const name = target.name === "" ? "anonymous" : target.name;
  const { module, exportName, ...rest } = given;
  // A value that is no object of options is refused with them.
  const options = typeof given === "object" ? rest : given;
  const named = exportNameOf(name, { module, exportName });
  const registration = registerRemote(target, name, 1, named);
  if (isClass(target)) return actorClass(target, registration, checkedActor(name, options));
  const made = remoteFunction(registration, isGenerator(target), checkedTask(name, options));
  noteTarget(made, target);
  return made;
}

function exportNameOf(
  name: string,
  { module, exportName }: { [Part in keyof RemoteName]: RemoteName[Part] | undefined },
): ExportName | undefined {
  if (module === undefined && exportName === undefined) return undefined;
  if (typeof exportName !== "string" || exportName === "") {
    throw new InvalidOptionError(
      "exportName",
      `remote ${name}: exportName must be the name of an export, not ${show(exportName)}`,
    );
  }
  const given = module instanceof URL ? module.href : module;
  const url =
    typeof given === "string" && isAbsolute(given) ? pathToFileURL(given).href : String(given);
  if (!url.startsWith("file:")) {
    throw new InvalidOptionError(
      "module",
      `remote ${name}: module must be the import.meta.url of a file, or its path, not ${show(module)}`,
    );
  }
  return { moduleUrl: driversOf(url), exportName };
}
