/**
 * Finds and ends actors, and registers serializers of classes.
 */
import { addSerializer } from "../protocol/values/serializers.ts";
import type { Serializer } from "../protocol/values/encodable.ts";
import { currentNamespace } from "../caller/current.ts";
import { insideOf } from "../caller/handle.ts";
import {
  ActorNotFoundError,
  InvalidOptionError,
  type NotEncodableError,
} from "../shared/errors.ts";
import { show } from "../shared/text/show.ts";
import { checkOptions, flag, text } from "../shared/options.ts";
import { type ActorName, findPython, killPython, listPython } from "./python/python.ts";
import type { PythonHandle } from "./python/python-types.ts";
import { asked, isDriverCode, never, useCaller } from "./session.ts";
import type { ActorHandle } from "./handle-types.ts";

/** Options of `kill`. */
export interface KillOptions {
  /** Whether the actor stays dead; false lets the restart policy apply. Default true. */
  readonly noRestart?: boolean | undefined;
}

/**
 * Ends an actor now: its running, queued and later calls reject with ActorDiedError. Resolves when
 * it is gone. Rejects with SessionEndedError for a handle of a session that has ended.
 *
 * A thread that is in a synchronous native call (`execSync`, an addon) is gone, and its callers get
 * their errors, when that call returns. A process is gone at once.
 *
 * With `noRestart: false` and a restart left, its running and queued calls are retried as
 * `maxTaskRetries` says, or reject with ActorUnavailableError. Await the kill before other calls,
 * which then run in the restarted actor: calls made earlier may reach the one that ends.
 */
export async function kill(
  actor: ActorHandle<object> | PythonHandle,
  options: KillOptions = {},
): Promise<void> {
  if (isDriverCode()) return never();
  checkOptions("kill", options, { noRestart: flag });
  const noRestart = options.noRestart ?? true;
  const ofPython = killPython(actor, noRestart);
  if (ofPython !== undefined) return ofPython;
  // The handle's own runtime does it, in this turn: no other one starts for that.
  const { info, caller } = insideOf(actor);
  caller.checkAlive();
  await caller.waiting.during(caller.directory.kill(info, noRestart));
}

/**
 * Returns the living actor of that name; the handle does not keep it alive. Give its class as type:
 * `getActor<Counter>("counter")`. Rejects with ActorNotFoundError, InvalidOptionError.
 */
export async function getActor<Instance extends object>(
  name: string,
  options: { readonly namespace?: string | undefined } = {},
): Promise<ActorHandle<Instance>> {
  if (isDriverCode()) return never();
  const caller = useCaller();
  if (text(name) !== undefined) {
    throw new InvalidOptionError(
      "name",
      `getActor: the name ${String(text(name))}, not ${show(name)}`,
    );
  }
  checkOptions("getActor", options, { namespace: text });
  const info = await caller.waiting.asking(caller.directory.find(name, options.namespace));
  if (info === undefined) {
    const there = await findPython<Instance>(caller, name, options.namespace);
    if (there !== undefined) return there as unknown as ActorHandle<Instance>;
    throw new ActorNotFoundError(name, options.namespace ?? currentNamespace());
  }
  return caller.handles.weak(info) as ActorHandle<Instance>;
}

/**
 * Returns the names of living actors in this namespace, or in all: those of this session, and on a
 * Ray cluster those of the cluster, which detached actors are. Rejects with InvalidOptionError.
 */
export async function listNamedActors(
  options: { readonly allNamespaces?: boolean | undefined } = {},
): Promise<{ readonly name: string; readonly namespace: string }[]> {
  checkOptions("listNamedActors", options, { allNamespaces: flag });
  const { allNamespaces = false } = options;
  const own = await asked((directory) => directory.list(allNamespaces));
  const there = await listPython(useCaller(), allNamespaces);
  // This session's come first, as in `getActor`.
  const isOwn = ({ name, namespace }: ActorName): boolean =>
    own.some((one) => one.name === name && one.namespace === namespace);
  return [...own, ...there.filter((one) => !isOwn(one))];
}

/**
 * Returns why a value cannot be an argument, a result or an object of `put`, with the path of the
 * first part that cannot travel (Ray's `ray.util.inspect_serializability`). Undefined: it can, as
 * far as can be seen without doing it.
 *
 * @param name what the value is called in the path
 */
export function inspectSerializability(
  value: unknown,
  name: string = "value",
): NotEncodableError | undefined {
  return useCaller().values.codec.refusal(value, name);
}

/**
 * Lets instances of a class travel: `write` gives plain data, and `read` makes the instance again.
 * Call it at the top level of a module that both sides load (the module of the actor class, or one
 * that it imports).
 *
 * @throws InvalidOptionError when another class has taken the serializer's id
 */
export function registerSerializer<T extends object>(
  registeredClass: abstract new (...args: never[]) => T,
  serializer: Serializer<T>,
): void {
  addSerializer(registeredClass, serializer as Serializer);
}
