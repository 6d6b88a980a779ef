/**
 * Runs one task: finds the function, calls it, and answers. The lease limits a worker to one task
 * at a time.
 */
import type { Caller } from "../../caller/caller.ts";
import { asTask, type TaskScope } from "../../caller/waits/task-scope.ts";
import type { Assignment } from "../../rpc/demand.ts";
import type { RemoteKey } from "../../rpc/directory.ts";
import type { CallMessage } from "../../rpc/session/incoming-calls.ts";
import type { Session } from "../../rpc/session/session.ts";
import { clockMs } from "../../shared/clock.ts";
import type { Method } from "../../shared/methods.ts";
import { Execution, type ExecutionSite } from "./execution.ts";
import { argumentsOf } from "./instance.ts";
import type { Loader } from "../code/loader.ts";
import { runStream } from "./streaming.ts";

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
  const key = taskKeyOf(call.route.method);
  if (key === undefined) return session.answer({ kind: "absent", id: call.id });
  const execution = new Execution(call, session, siteOf(key.name, key.assignment, caller));
  running.begun(execution);
  try {
    const task = (await loader.find(key)) as Method;
    if (!execution.isWanted) return;
    const startMs = caller.events === undefined ? 0 : clockMs();
    const args = argumentsOf(call, session, caller.values.codec, () => execution.signals);
    if (caller.events !== undefined) execution.begun(startMs);
    await asTask(execution, async () => {
      const value = await task(...args);
      if (call.route.shape?.returns === "streaming") await runStream(value, execution, caller);
      else execution.answer(value);
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

type TaskKey = RemoteKey & { readonly assignment: Assignment };

/** Returns undefined for a malformed key: there is no such task. */
function taskKeyOf(method: string): TaskKey | undefined {
  let key: Partial<TaskKey> | null;
  try {
    key = JSON.parse(method) as Partial<TaskKey> | null;
  } catch {
    return undefined;
  }
  if (typeof key !== "object" || key === null || typeof key.assignment !== "object")
    return undefined;
  const isKey = texts(key, "moduleUrl", "name") && (texts(key, "exportName") || isPlace(key));
  return isKey ? (key as TaskKey) : undefined;
}

function isPlace(key: object): boolean {
  return texts(key, "site", "files") && parts(key, "number", "index", "count");
}

function texts(key: object, ...names: readonly string[]): boolean {
  return parts(key, "string", ...names);
}

function parts(key: object, type: "string" | "number", ...names: readonly string[]): boolean {
  return names.every((name) => typeof (key as Record<string, unknown>)[name] === type);
}

/**
 * Makes the site outside the scope of the arguments: code that the task starts may keep its
 * execution, which must not keep them.
 */
function siteOf(name: string, assignment: Assignment, caller: Caller): ExecutionSite {
  return { caller, actor: undefined, assignment, functionName: () => name };
}
