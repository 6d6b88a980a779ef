/**
 * Python actors of the Ray cluster that the session runs on: by the import path of a class, or by
 * the name of an actor that lives there.
 */
import { statSync } from "node:fs";
import { resolve } from "node:path";
import type {
  ForeignFailure,
  ForeignOptions,
  ForeignRequest,
  ForeignValues,
} from "../../rpc/engine-actors.ts";
import { decode, encode } from "../../protocol/values/python-values.ts";
import { currentNamespace } from "../../caller/current.ts";
import type { Caller } from "../../caller/caller.ts";
import { getValues } from "../../caller/waits/get-and-wait.ts";
import { Wait } from "../../caller/waits/stuck-watch.ts";
import {
  ActorAlreadyExistsError,
  ActorDiedError,
  ActorNotFoundError,
  ActorUnavailableError,
  InvalidOptionError,
  MethodNotFoundError,
  PythonError,
  PythonTaskError,
  RaySystemError,
  RuntimeEnvSetupError,
  TaskCancelledError,
} from "../../shared/errors.ts";
import { newId } from "../../shared/ids.ts";
import {
  type Checks,
  checkOptions,
  count,
  flag,
  nameText,
  oneOf,
  text,
} from "../../shared/options.ts";
import { show } from "../../shared/text/show.ts";
import type { ObjectEntry, Producer } from "../../store/object-entry.ts";
import { entryOf, liveEntryOf, ObjectRef } from "../../store/object-ref.ts";
import { amount, bytes, gpus, resources } from "../scheduling/amounts.ts";
import { labels } from "../scheduling/labels.ts";
import { useCaller } from "../session.ts";
import { Keywords } from "./keywords.ts";
import type { PythonActor, PythonActorClass, PythonActorOptions } from "./python-types.ts";

/**
 * Returns a class of Python by its import path: `python<Counter>("shop.counters:Counter")`. Needs a
 * session on a Ray cluster.
 *
 * @throws InvalidOptionError
 */
export function python<Instance>(path: `${string}:${string}`): PythonActorClass<Instance>;
/**
 * Returns a living Python actor by its name: `python<Counter>("counter")`. Calls reject with
 * ActorNotFoundError when there is none. Needs a session on a Ray cluster.
 *
 * @throws InvalidOptionError
 */
export function python<Instance>(
  name: string,
  options?: { readonly namespace?: string | undefined },
): PythonActor<Instance>;
export function python<Instance>(
  target: string,
  options: { readonly namespace?: string | undefined } = {},
): PythonActorClass<Instance> | PythonActor<Instance> {
  const problem = text(target);
  if (problem !== undefined) {
    throw new InvalidOptionError("name", `python: the name ${problem}, not ${show(target)}`);
  }
  checkOptions("python", options, { namespace: text });
  if (target.includes(":")) return pythonClass<Instance>(target, {});
  const caller = useCaller();
  const { namespace } = options;
  const actorId = newId("actor");
  const found = ask(caller, { kind: "find", actorId, name: target, namespace });
  return handleOf<Instance>(new Target({ caller, actorId, name: target, known: found, namespace }));
}

const optionChecks: Checks<PythonActorOptions> = {
  numCpus: amount,
  numGpus: gpus,
  memory: bytes,
  resources,
  labelSelector: labels,
  name: nameText,
  namespace: text,
  getIfExists: flag,
  lifetime: oneOf("detached", "non_detached"),
  maxRestarts: count(-1),
  maxTaskRetries: count(-1),
  maxConcurrency: count(1),
  workingDir: (value) =>
    typeof value === "string" && statSync(value, { throwIfNoEntry: false })?.isDirectory() === true
      ? undefined
      : "must be an existing folder",
};

function pythonClass<Instance>(
  path: string,
  options: PythonActorOptions,
): PythonActorClass<Instance> {
  return {
    remote(...args) {
      const { workingDir, namespace, ...rest } = options;
      const name = path.slice(path.indexOf(":") + 1);
      return makeForeign<Instance>({ name, namespace, args }, (actorId, sent) => ({
        kind: "create",
        actorId,
        path,
        options: rays({ ...rest, namespace }),
        workingDir: workingDir === undefined ? undefined : resolve(workingDir),
        args: sent,
      }));
    },
    options(more) {
      const checked = checkOptions(path, more, optionChecks);
      return pythonClass<Instance>(path, { ...options, ...checked });
    },
  };
}

/** A new actor of the engine's cluster. */
export interface NewForeign {
  /** For messages. */
  readonly name: string;
  readonly namespace: string | undefined;
  /** The arguments of the constructor. */
  readonly args: readonly unknown[];
}

/** Makes an actor of the engine's cluster: the request goes when the arguments are there. */
export function makeForeign<Instance>(
  { name, namespace, args }: NewForeign,
  request: (actorId: string, args: ForeignValues) => ForeignRequest,
): PythonActor<Instance> {
  const caller = useCaller();
  const actorId = newId("actor");
  const known = withValues(caller, args, (sent) => ask(caller, request(actorId, encode(sent))));
  return handleOf<Instance>(new Target({ caller, actorId, name, known, namespace }));
}

/** Ray's names of options. */
export function rays(options: Readonly<Record<string, unknown>>): ForeignOptions {
  return Object.fromEntries(
    Object.entries(options)
      .filter(([, value]) => value !== undefined)
      .map(([name, value]) => [
        name.replaceAll(/[A-Z]/g, (letter) => `_${letter.toLowerCase()}`),
        value,
      ]),
  );
}

interface TargetParts {
  readonly caller: Caller;
  readonly actorId: string;
  readonly name: string;
  readonly known: Promise<unknown>;
  readonly namespace: string | undefined;
}

/** The actor behind a handle. */
class Target {
  readonly caller: Caller;
  readonly actorId: string;
  readonly name: string;
  readonly namespace: string;
  /** Settles when it is known whether there is such an actor. */
  readonly known: Promise<unknown>;

  constructor({ caller, actorId, name, known, namespace }: TargetParts) {
    this.caller = caller;
    this.actorId = actorId;
    this.name = name;
    this.namespace = namespace ?? currentNamespace();
    this.known = known.catch((error: unknown) => Promise.reject(this.explained(error)));
    // Calls reject with it.
    this.known.catch(() => undefined);
  }

  call(method: string, args: readonly unknown[]): ObjectRef {
    const { caller, actorId, name } = this;
    const call = new PythonCall(caller);
    const answer = withValues(caller, args, (sent) => {
      const values = encode(sent);
      return this.known
        .then(() => call.send({ actorId, method, args: values }))
        .catch((error: unknown) => Promise.reject(this.explained(error, method, call.id)));
    });
    return call.makes(caller.objects.refOf(`${name}.${method}`, answer));
  }

  explained(error: unknown, method = "__init__", callId = this.actorId): unknown {
    if (!(error instanceof Failed)) return error;
    const { kind, type, message, traceback } = error.failure;
    const actor = { actorId: this.actorId, className: this.name };
    switch (kind) {
      case "missing":
        return new ActorNotFoundError(this.name, this.namespace);
      case "taken":
        return new ActorAlreadyExistsError(message, this.namespace);
      case "method":
        return new MethodNotFoundError(this.name, method, []);
      case "thrown":
        return new PythonTaskError(
          `${this.name}.${method}`,
          new PythonError(type, message, traceback),
        );
      case "cancelled":
        return new TaskCancelledError(callId, `${this.name}.${method}`);
      case "unavailable":
        return new ActorUnavailableError(actor, { kind: "unreachable", message });
      case "died": {
        const cause = new PythonError(type, message, traceback);
        return new ActorDiedError(actor, { kind: "killed", message, error: cause });
      }
      case "confined":
        return new RuntimeEnvSetupError(`actor ${this.name}`, message);
      case "refused":
    }
    return new RaySystemError(`${type} in Ray: ${message}`);
  }
}

/** A call that is under way, which `cancel` ends. */
class PythonCall implements Producer {
  readonly #caller: Caller;
  #entry: ObjectEntry | undefined;
  #isSent = false;

  constructor(caller: Caller) {
    this.#caller = caller;
  }

  get id(): string | undefined {
    return this.#entry?.id;
  }

  /** Takes the ref of its value, which it returns. */
  makes(ref: ObjectRef): ObjectRef {
    this.#entry = entryOf(ref);
    this.#entry.producer = this;
    return ref;
  }

  async send(
    what: Omit<Extract<ForeignRequest, { kind: "call" }>, "kind" | "callId">,
  ): Promise<unknown> {
    const entry = this.#entry;
    // A call that was cancelled before never runs.
    if (entry === undefined || entry.outcome !== undefined) return undefined;
    this.#isSent = true;
    return ask(this.#caller, { kind: "call", callId: entry.id, ...what });
  }

  /** Ray does not say when a synchronous method sees it: nobody waits for that here. */
  cancel(recursive: boolean, force: boolean): void {
    const entry = this.#entry;
    if (entry === undefined || entry.outcome !== undefined) return;
    if (force) {
      throw new InvalidOptionError(
        "force",
        `cancel: force is for tasks; ${entry.label} is a call to an actor, use kill to end the actor`,
      );
    }
    entry.reject(this.#caller.values.describe(new TaskCancelledError(entry.id, entry.label)));
    if (!this.#isSent) return;
    // Where the cluster is gone, the call is, too.
    ask(this.#caller, { kind: "cancel", callId: entry.id, recursive }).catch(() => undefined);
  }
}

class Failed extends Error {
  readonly failure: ForeignFailure;
  constructor(failure: ForeignFailure) {
    super(failure.message);
    this.failure = failure;
  }
}

async function ask(caller: Caller, request: ForeignRequest): Promise<unknown> {
  const { ok, failure } = await caller.waiting.asking(caller.directory.foreign(request));
  if (failure !== undefined) throw new Failed(failure);
  if (ok !== undefined) return decode(ok.value, ok.buffers.map(memoryOf));
  throw new RaySystemError(
    'Python actors need a session on a Ray cluster: init({ address: "ray+http://head:8265" })',
  );
}

function memoryOf(bytesOfIt: Uint8Array): ArrayBuffer {
  return Uint8Array.from(bytesOfIt).buffer;
}

/** Calls `send` with positional arguments and keywords: at once, unless one is a ref. */
function withValues(
  caller: Caller,
  args: readonly unknown[],
  send: (sent: readonly [unknown[], object]) => Promise<unknown>,
): Promise<unknown> {
  const last = args.at(-1);
  const named = last instanceof Keywords ? last.values : {};
  const positional = last instanceof Keywords ? args.slice(0, -1) : [...args];
  const names = Object.keys(named);
  const all = [...positional, ...Object.values(named)];
  const refs = all.filter((one) => one instanceof ObjectRef);
  const parts = (values: readonly unknown[]): readonly [unknown[], object] => [
    values.slice(0, positional.length),
    Object.fromEntries(names.map((name, index) => [name, values[positional.length + index]])),
  ];
  if (refs.length === 0) return send(parts(all));
  const wait = new Wait("get");
  return getValues(caller, refs.map(liveEntryOf), wait).then((values) => {
    const rest = values.values();
    return send(parts(all.map((one) => (one instanceof ObjectRef ? rest.next().value : one))));
  });
}

const targets: WeakMap<object, Target> = new WeakMap();

/** Properties that tools look up on any object. */
const probed: ReadonlySet<string> = new Set(["then", "toJSON", "asymmetricMatch", "nodeType"]);

class Handle {
  toJSON(): never {
    throw new TypeError(
      "a handle of a Python actor has no JSON: another one looks it up by its name",
    );
  }
}

function handleOf<Instance>(target: Target): PythonActor<Instance> {
  const handle = new Handle();
  targets.set(handle, target);
  const proxy = new Proxy(handle, {
    get(made, key, receiver): unknown {
      if (typeof key === "symbol" || probed.has(key)) return Reflect.get(made, key, receiver);
      return { remote: (...args: unknown[]) => target.call(key, args) };
    },
  });
  targets.set(proxy, target);
  return proxy as unknown as PythonActor<Instance>;
}

/** Ends a Python actor. Undefined for anything else. */
export function killPython(actor: object, noRestart: boolean): Promise<void> | undefined {
  const target = targets.get(actor);
  return target && endOf(target, noRestart);
}

async function endOf({ known, caller, actorId }: Target, noRestart: boolean): Promise<void> {
  await known;
  await ask(caller, { kind: "kill", actorId, noRestart });
}

/** Returns the Python actor of that name; undefined when there is none, or no cluster. */
export async function findPython<Instance>(
  caller: Caller,
  name: string,
  namespace: string | undefined,
): Promise<PythonActor<Instance> | undefined> {
  const actorId = newId("actor");
  const { ok } = await caller.waiting.asking(
    caller.directory.foreign({ kind: "find", actorId, name, namespace }),
  );
  if (ok === undefined) return undefined;
  return handleOf<Instance>(
    new Target({ caller, actorId, name, known: Promise.resolve(), namespace }),
  );
}

/** A name and its namespace. */
export interface ActorName {
  readonly name: string;
  readonly namespace: string;
}

/**
 * Returns the names of the cluster's own actors, in the session's namespace or in all; without a
 * cluster, none.
 */
export async function listPython(
  caller: Caller,
  allNamespaces: boolean,
): Promise<readonly ActorName[]> {
  const { ok, failure } = await caller.waiting.asking(
    caller.directory.foreign({ kind: "list", allNamespaces }),
  );
  if (failure !== undefined) throw new RaySystemError(`${failure.type} in Ray: ${failure.message}`);
  return ok === undefined ? [] : (decode(ok.value, []) as readonly ActorName[]);
}
