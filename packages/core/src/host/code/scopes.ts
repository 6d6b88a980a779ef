/**
 * What the code of a function sees: the variables of its module and of the functions around it. Only the inspector knows, which any thread may ask about itself:
 * 20 ms the first time, under a millisecond after that.
 *
 * So a class that nobody exports is found, in a script that waits at its top level, in CommonJS, in a bundle, and where another loader than Node's has the modules.
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
  /** The variable, and after a dot what is so called in what it holds. */
  readonly path: string;
  readonly value: unknown;
}

/**
 * The nearest variables first, then what is called `name` in the modules and other objects that they hold. Nothing where the inspector may not be asked.
 *
 * Of those objects nothing else is looked at: they may be large, and a getter of the user's is not run, but for those by which compilers export.
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
    // It would be code of the user's that answers.
    if (types.isProxy(holder)) continue;
    yield { path: `${path}.${name}`, value: read(holder as object, name) };
  }
}

/** Each as an object with its variables, the innermost first. */
function scopesOf(target: unknown): readonly object[] {
  // Not in every program is it there, or allowed.
  const inspector = process.getBuiltinModule("node:inspector") as
    | { readonly Session: new () => Session }
    | undefined;
  if (inspector === undefined) return [];
  const session = new inspector.Session();
  // The inspector evaluates in the realm of Node itself, which is not this one where a test runner has made another.
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

/** Within a thread the answer is there when the question returns. */
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

/** Undefined also for what cannot be read, as a variable whose line was not reached. */
function read(holder: object, name: string): unknown {
  try {
    const found = Object.getOwnPropertyDescriptor(holder, name);
    if (found === undefined || "value" in found) return found?.value;
    return isCompiled(holder) ? (holder as Readonly<Record<string, unknown>>)[name] : undefined;
  } catch {
    return undefined;
  }
}

/** The exports of a module, as compilers and test runners make them. */
function isCompiled(holder: object): boolean {
  return Object.hasOwn(holder, "__esModule") || Object.hasOwn(holder, Symbol.toStringTag);
}
