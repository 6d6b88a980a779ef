/** Runs one task: finds the function, calls it, answers. The lease keeps it to one task at a time. */
import type { Caller } from "../caller/caller.ts";
import { asTask, type TaskScope } from "../caller/task-scope.ts";
import type { Assignment } from "../rpc/demand.ts";
import type { RemoteKey } from "../rpc/directory.ts";
import type { CallMessage, Session } from "../rpc/session.ts";
import { clockMs } from "../shared/clock.ts";
import type { Method } from "../shared/methods.ts";
import { Execution, type ExecutionSite } from "./execution.ts";
import { argumentsOf } from "./instance.ts";
import type { Loader } from "./loader.ts";
import { runStream } from "./streaming.ts";

/** The target of a task's route; its method is the key of the function, as JSON. */
export const taskTarget = "task";

/** Hears of those that this host runs. */
export interface RunningTasks {
  begun(task: TaskScope): void;
  ended(task: TaskScope): void;
}

export async function runTask(
  call: CallMessage,
  session: Session,
  loader: Loader,
  caller: Caller,
  running: RunningTasks,
): Promise<void> {
  const key = taskKeyOf(call.route.method);
  if (key === undefined) return session.answerAbsent(call.id);
  const execution = new Execution(call, session, siteOf(key.name, key.assignment, caller));
  running.begun(execution);
  try {
    const task = (await loader.find(key)) as Method;
    if (!execution.isWanted) return;
    const startMs = caller.events === undefined ? 0 : clockMs();
    const args = argumentsOf(call, session, caller.codec);
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
    // Before its caller sends the next one.
    running.ended(execution);
    session.flush();
  }
}

type TaskKey = RemoteKey & { readonly assignment: Assignment };

/** Undefined for what is none: there is no such task. */
function taskKeyOf(method: string): TaskKey | undefined {
  let key: Partial<TaskKey> | null;
  try {
    key = JSON.parse(method) as Partial<TaskKey> | null;
  } catch {
    return undefined;
  }
  const { moduleUrl, name, assignment } = key ?? {};
  const isKey = typeof moduleUrl === "string" && typeof name === "string";
  return isKey && typeof assignment === "object" ? (key as TaskKey) : undefined;
}

/** Made here, and not where the arguments are in scope: what the task starts may keep its execution, which must not keep them. */
function siteOf(name: string, assignment: Assignment, caller: Caller): ExecutionSite {
  return { caller, actor: undefined, assignment, functionName: () => name };
}
