/**
 * `remote`: makes an actor class of a class, or a task of a function, identified by the place of
 * this call in its module.
 */
import { isAbsolute } from "node:path";
import { pathToFileURL } from "node:url";
import type { CallOptionsOfMethod } from "../../caller/call-options.ts";
import { setRemoteMakers } from "../../caller/remote-value.ts";
import { noteTarget, registerRemote } from "../../host/code/registry.ts";
import type { ExportName } from "../../rpc/remote-key.ts";
import { driversOf } from "../../shared/code-roots.ts";
import { InvalidOptionError } from "../../shared/errors.ts";
import { isClass, isGenerator, membersOf, tagOf } from "../../shared/methods.ts";
import { show } from "../../shared/text/show.ts";
import type { Constructor, OnlyOptions, Reshaped } from "../handle-types.ts";
import { type ActorClass, actorClass, receivedClass } from "./actor-class.ts";
import { checkedActor, checkedTask } from "./option-checks.ts";
import type { ActorOptions, TaskOptions } from "./options.ts";
import { receivedFunction, type RemoteFunction, remoteFunction } from "./remote-function.ts";

/**
 * The module that a worker imports to find a class or function, and the export's name: the class or
 * function itself, or the result of `remote`. It is needed where the place of the `remote()` call
 * does not identify the remote: in a loop over external data, in a decorator, in a library that
 * calls it for others.
 */
export interface RemoteName {
  /** The module: its `import.meta.url`, or its path. */
  readonly module?: string | URL | undefined;
  /** The name of the export. */
  readonly exportName?: string | undefined;
}

/** Options of an actor class, with its `methods` as they are given. */
type ClassOptions<Class extends Constructor, Methods> = Omit<ActorOptions, "methods"> & {
  /** Options of methods, by name. */
  readonly methods?: (Methods & OnlyMethods<InstanceType<Class>, Methods>) | undefined;
};

/** Refuses names that no method has, and options that methods do not have. */
type OnlyMethods<Instance, Methods> = OnlyOptions<Methods, MethodsAlone<Instance>> & {
  readonly [Name in keyof Methods]: OnlyOptions<Methods[Name], CallOptionsOfMethod>;
};

type MethodsAlone<Instance> = {
  [
    Name in keyof Instance as Instance[Name] extends (...args: never[]) => unknown ? Name : never
  ]: unknown;
};

/** Where the type of the `methods` names none, it does not say which results they change. */
type Named<Methods> = string extends keyof Methods ? unknown : Methods;

/**
 * Makes an actor class of a class, or a task of a function. Call it at the top level of a module,
 * above any driver code: workers import the module to find the class.
 *
 * @throws InvalidOptionError for a bad option; RemoteNotRegisteredError when the call stands in no
 * file
 */
export function remote<
  Class extends Constructor,
  const Methods extends NonNullable<ActorOptions["methods"]> = {},
>(
  target: Class,
  options?: ClassOptions<Class, Methods> & RemoteName,
): ActorClass<Class, Named<Methods>>;
export function remote<
  Task extends (...args: never[]) => unknown,
  const Options extends TaskOptions = {},
>(
  target: Task,
  options?: Options & RemoteName & OnlyOptions<Options, TaskOptions & RemoteName>,
): RemoteFunction<Task, Reshaped<unknown, NoInfer<Options>>>;
export function remote(
  target: unknown,
  given: ActorOptions & Omit<TaskOptions, "isolation"> & RemoteName = {},
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
  // The check of tasks refuses what they do not have.
  const made = isClass(target)
    ? actorClass(membersOf(target), registration, checkedActor(name, options))
    : remoteFunction(
        registration,
        isGenerator(tagOf(target)),
        checkedTask(name, options as TaskOptions),
      );
  noteTarget(made, target);
  return made;
}

setRemoteMakers({ function: receivedFunction, class: receivedClass });

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
