/**
 * Runs one task: finds the function, calls it, and answers. The lease limits a worker to one task
 * at a time.
 */
import type { Caller } from "../../caller/caller.ts";
import type { TaskScope } from "../../caller/waits/task-scope.ts";
import type { Assignment } from "../../rpc/resource-demand.ts";
import type { RemoteKey } from "../../rpc/remote-key.ts";
import type { CallMessage, Route } from "../../protocol/message.ts";
import type { Session } from "../../rpc/session/session.ts";
import { clockMs } from "../../shared/clock.ts";
import { RemoteNotRegisteredError } from "../../shared/errors.ts";
import { isMethod, type Method } from "../../shared/methods.ts";
import { Execution, type ExecutionSite } from "./execution.ts";
import { argumentsOf } from "./arguments.ts";
import type { Loader } from "../code/loader.ts";
import { answerItems } from "./streaming.ts";

/** The target of a task's route; its method is the key of the function, as JSON. */
export const taskTarget = "task";

/** Observes the tasks that this host runs. */
export interface RunningTasks {
  begun(task: TaskScope): void;
  ended(task: TaskScope): void;
}

/** The parts of a host that run tasks. */
export interface TaskRunner {
  readonly loader: Pick<Loader, "find">;
  readonly caller: Caller;
  readonly running: RunningTasks;
}

export async function runTask(
  call: CallMessage,
  session: Session,
  { loader, caller, running }: TaskRunner,
): Promise<void> {
  const key = taskKeyOf(call.route);
  if (key === undefined) return session.answer({ kind: "gone", id: call.id });
  const execution = new Execution(call, session, siteOf(key.name, key.assignment, caller));
  running.begun(execution);
  try {
    const task = await findFunction(loader, key);
    if (!execution.isWanted) return;
    const startMs = caller.events === undefined ? 0 : clockMs();
    const args = argumentsOf(call, session, caller.values.codec, () => execution.signals);
    if (caller.events !== undefined) execution.begun(startMs);
    execution.trace(call);
    await execution.run(async () => {
      const value = await task(...args);
      if (call.route.shape?.returns === undefined) execution.answer(value);
      else await answerItems(value, execution, caller);
    });
  } catch (error) {
    execution.answerFailure(error);
  } finally {
    execution.ended();
    // The worker is free before its caller sends the next task.
    running.ended(execution);
    session.flush();
  }
}

/** Returns the function of a key. Rejects when there is none. */
export async function findFunction(loader: TaskRunner["loader"], key: RemoteKey): Promise<Method> {
  const found = await loader.find(key);
  if (isMethod(found)) return found;
  throw new RemoteNotRegisteredError(key.name, key.moduleUrl, "it is no function");
}

type TaskKey = RemoteKey & { readonly assignment: Assignment };

/** Keys by their routes: a session has one for all calls of a function. */
const keys: WeakMap<Route, TaskKey> = new WeakMap();

/** Returns undefined for a malformed key: there is no such task. */
function taskKeyOf(route: Route): TaskKey | undefined {
  const known = keys.get(route);
  if (known !== undefined) return known;
  let key: unknown;
  try {
    key = JSON.parse(route.method);
  } catch {
    return undefined;
  }
  if (!isTaskKey(key)) return undefined;
  keys.set(route, key);
  return key;
}

function isTaskKey(key: unknown): key is TaskKey {
  if (typeof key !== "object" || key === null) return false;
  const has = (type: "string" | "number", ...names: readonly string[]): boolean =>
    names.every((name) => typeof Reflect.get(key, name) === type);
  const isPlace = has("string", "site", "files") && has("number", "index", "count");
  const isAssigned = "assignment" in key && typeof key.assignment === "object";
  return (
    isAssigned && has("string", "moduleUrl", "name") && (has("string", "exportName") || isPlace)
  );
}

/**
 * Makes the site outside the scope of the arguments: code that the task starts may keep its
 * execution, which must not keep them.
 */
function siteOf(name: string, assignment: Assignment, caller: Caller): ExecutionSite {
  return { caller, actor: undefined, assignment, functionName: () => name };
}
