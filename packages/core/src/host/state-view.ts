/**
 * A host's view of the calls that have arrived in it, for the state API.
 */
import type { Caller } from "../caller/caller.ts";
import { maxViewed, viewCalls, viewObjects, viewStored } from "../caller/state-view.ts";
import type { TaskScope } from "../caller/waits/task-scope.ts";
import type { ExecutionView, RuntimeView, TaskState } from "../rpc/state.ts";
import { Execution } from "./calls/execution.ts";

export function viewHost(caller: Caller): RuntimeView {
  return {
    calls: viewCalls(caller),
    executions: viewExecutions(caller),
    objects: viewObjects(caller),
    stored: viewStored(caller),
    pid: process.pid,
  };
}

function viewExecutions(caller: Caller): readonly ExecutionView[] {
  const waiting = new Map<TaskScope, string>();
  for (const { task, what } of caller.stuck.waits())
    if (task !== undefined) waiting.set(task, what);
  const views: ExecutionView[] = [];
  for (const session of caller.sessions.open) {
    for (const running of session.calls.tracked()) {
      if (views.length >= maxViewed) return views;
      if (!(running instanceof Execution)) continue;
      views.push({ taskId: running.taskId, state: stateOf(running, waiting.get(running)) });
    }
  }
  return views;
}

export function stateOf({ isQueued }: Execution, waitsIn: string | undefined): TaskState {
  if (isQueued) return "PENDING_ACTOR_TASK_ORDERING_OR_CONCURRENCY";
  if (waitsIn === undefined) return "RUNNING";
  return waitsIn === "wait" ? "RUNNING_IN_RAY_WAIT" : "RUNNING_IN_RAY_GET";
}
