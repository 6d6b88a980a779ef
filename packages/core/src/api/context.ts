/** What running code can know about itself, by Ray's names. */
import { currentCaller, currentNamespace } from "../caller/current.ts";
import { currentTask, type TaskScope } from "../caller/waits/task-scope.ts";
import type { Amounts } from "../rpc/demand.ts";
import { InvalidOptionError, RaySystemError } from "../shared/errors.ts";
import { useCaller } from "./session.ts";
import type { ActorHandle } from "./types.ts";

/** Getters of a task or actor answer null in a driver. */
export interface RuntimeContext {
  readonly namespace: string;
  /** Aborted when the running call is cancelled; in a driver never. */
  readonly signal: AbortSignal;
  /** The worker: the id of the host that runs this code. */
  getWorkerId(): string;
  getNodeId(): string;
  /** The node's labels, those that it was given and `ray.io/node-id`. */
  getNodeLabels(): Readonly<Record<string, string>>;
  /** Everything between an `init` and its `shutdown` is one job. */
  getJobId(): string;
  getTaskId(): string | null;
  /** The call's own name, or `Class.method`. */
  getTaskName(): string | null;
  getTaskFunctionName(): string | null;
  getActorId(): string | null;
  /** "" for an actor without a name. */
  getActorName(): string | null;
  /** What it holds: `{}` for an actor that asked for nothing, and in a driver. */
  getAssignedResources(): Amounts;
  getPlacementGroupId(): string | null;
  shouldCaptureChildTasksInPlacementGroup(): boolean;
  /** A handle of the actor itself; it does not keep it alive. @throws RaySystemError outside an actor */
  currentActor<Instance extends object>(): ActorHandle<Instance>;
  /** Whether this is not the actor's first life. */
  wasCurrentActorReconstructed(): boolean;
  /** Whether the running call was cancelled; looks now, so that code that holds its thread may ask. @throws RaySystemError in a driver */
  isCanceled(): boolean;
}

const never: AbortSignal = new AbortController().signal;

/** What this code runs in. Take it inside the method: it is of the call that asks. */
export function getRuntimeContext(): RuntimeContext {
  const task = currentTask();
  const actor = task?.actor;
  const caller = useCaller();
  return {
    namespace: actor?.namespace ?? currentNamespace(),
    signal: task?.signal ?? never,
    getWorkerId: () => caller.id,
    getNodeId: () => caller.nodeId,
    getNodeLabels: () => caller.nodeLabels,
    getJobId: () => caller.jobId,
    getTaskId: () => task?.taskId ?? null,
    getTaskName: () => task?.taskName ?? null,
    getTaskFunctionName: () => task?.functionName ?? null,
    getActorId: () => actor?.info.actorId ?? null,
    getActorName: () => (actor === undefined ? null : (actor.name ?? "")),
    getAssignedResources: () => task?.assignment.resources ?? {},
    getPlacementGroupId: () => task?.assignment.group?.group.groupId ?? null,
    shouldCaptureChildTasksInPlacementGroup: () =>
      task?.assignment.group?.captureChildTasks ?? false,
    currentActor: <Instance extends object>() => {
      if (actor === undefined) throw new RaySystemError("currentActor: this code runs in no actor");
      return caller.handles.weak(actor.info) as ActorHandle<Instance>;
    },
    wasCurrentActorReconstructed: () => (actor?.incarnation ?? 0) > 0,
    isCanceled: () => taskOr("isCanceled", task).isCancelled(),
  };
}

/**
 * Ends the actor whose method calls it: calls that run may end, those in the queue reject with ActorDiedError, as does this one, whatever it
 * does afterwards. It is not restarted. Its `__ray_shutdown__` runs last.
 *
 * @throws InvalidOptionError outside an actor
 */
export function exitActor(): never {
  const task = currentCaller() === undefined ? undefined : currentTask();
  if (task?.actor === undefined) {
    throw new InvalidOptionError(
      "exitActor",
      "exitActor can only be called in a method of an actor",
    );
  }
  task.exitActor("it called exitActor");
  throw new RaySystemError("the actor exits; this is not an error of the method");
}

function taskOr(what: string, task: TaskScope | undefined): TaskScope {
  if (task === undefined) throw new RaySystemError(`${what}: this code runs in no task`);
  return task;
}
