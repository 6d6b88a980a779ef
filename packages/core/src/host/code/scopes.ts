/**
 * Finds the variables that a function's code sees: those of its module and of the functions around
 * it. Only the inspector knows them, which any thread may query about itself: 20 ms the first time,
 * under a millisecond afterwards.
 *
 * So a class without an export is found in a script that waits at its top level, in CommonJS, in a
 * bundle, and under another loader than Node's.
 */
import type { Session } from "node:inspector";
import { types } from "node:util";
import { runInThisContext } from "node:vm";

const slotName = "rayling.scopes";
const slot: unique symbol = Symbol.for(slotName) as never;

interface Slot {
  readonly target: unknown;
  readonly scopes: object[];
}

export interface Seen {
  /** The variable; after a dot, the name inside the object that it holds. */
  readonly path: string;
  readonly value: unknown;
}

/**
 * Yields the nearest variables first, then members called `name` of the modules and other objects
 * that they hold. Yields nothing where the inspector is not available.
 *
 * It reads no other member of those objects: they may be large. It runs no getter of the user's,
 * except those by which compilers export.
 */
export function* seenBy(target: unknown, name: string): Iterable<Seen> {
  const holders: Seen[] = [];
  for (const scope of scopesOf(target)) {
    for (const path of Object.getOwnPropertyNames(scope)) {
      const seen = { path, value: read(scope, path) };
      yield seen;
      if (typeof seen.value === "object" && seen.value !== null) holders.push(seen);
    }
  }
  for (const { path, value: holder } of holders) {
    // A proxy would answer with code of the user's.
    if (types.isProxy(holder)) continue;
    yield { path: `${path}.${name}`, value: read(holder as object, name) };
  }
}

/** Returns each scope as an object with its variables, the innermost first. */
function scopesOf(target: unknown): readonly object[] {
  // Some programs lack it or forbid it.
  const inspector = process.getBuiltinModule("node:inspector") as
    | { readonly Session: new () => Session }
    | undefined;
  if (inspector === undefined) return [];
  const session = new inspector.Session();
  // The inspector evaluates in Node's own realm, which differs from this one where a test runner
  // has made another.
  const holder = runInThisContext("globalThis") as { [slot]?: Slot };
  try {
    session.connect();
    holder[slot] = { target, scopes: [] };
    const kept = `globalThis[Symbol.for(${JSON.stringify(slotName)})]`;
    const { result } = ask(session, "Runtime.evaluate", { expression: `${kept}.target` });
    const [scopeList] = internals(session, result.objectId);
    for (const { value } of properties(session, scopeList?.value?.objectId)) {
      if (value?.objectId === undefined) continue;
      ask(session, "Runtime.callFunctionOn", {
        objectId: value.objectId,
        functionDeclaration: `function () { if (this.description !== "Global") ${kept}.scopes.push(this.object); }`,
      });
    }
    return [...new Set(holder[slot].scopes.filter((scope) => typeof scope === "object"))];
  } catch {
    return [];
  } finally {
    delete holder[slot];
    session.disconnect();
  }
}

interface RemoteObject {
  readonly objectId?: string;
}
interface Property {
  readonly name: string;
  readonly value?: RemoteObject;
}
interface Answer {
  readonly result: RemoteObject & readonly Property[];
  readonly internalProperties?: readonly Property[];
}

/** Within a thread the answer arrives before `post` returns. */
function ask(session: Session, method: string, parameters: object): Answer {
  let answer: Answer | undefined;
  session.post(method, parameters, (error, result) => {
    if (error === null) answer = result as Answer;
  });
  if (answer === undefined) throw new Error(`${method} is not answered`);
  return answer;
}

function internals(session: Session, objectId: string | undefined): readonly Property[] {
  const { internalProperties = [] } = ask(session, "Runtime.getProperties", {
    objectId,
    ownProperties: true,
  });
  return internalProperties.filter(({ name }) => name === "[[Scopes]]");
}

function properties(session: Session, objectId: string | undefined): readonly Property[] {
  return ask(session, "Runtime.getProperties", { objectId, ownProperties: true }).result;
}

/**
 * Returns undefined also for a variable that cannot be read, such as one whose line was not
 * reached.
 */
function read(holder: object, name: string): unknown {
  try {
    const found = Object.getOwnPropertyDescriptor(holder, name);
    if (found === undefined || "value" in found) return found?.value;
    return isCompiled(holder) ? (holder as Readonly<Record<string, unknown>>)[name] : undefined;
  } catch {
    return undefined;
  }
}

/**
 * Whether an object looks like the exports of a module, as compilers and test runners make them.
 */
function isCompiled(holder: object): boolean {
  return Object.hasOwn(holder, "__esModule") || Object.hasOwn(holder, Symbol.toStringTag);
}
