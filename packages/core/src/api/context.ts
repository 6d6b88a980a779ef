/**
 * The facts that running code can learn about itself, by Ray's names.
 */
import { currentCaller, currentNamespace } from "../caller/current.ts";
import { currentTask, type TaskScope } from "../caller/waits/task-scope.ts";
import type { Amounts } from "../rpc/resource-demand.ts";
import { InvalidOptionError, RaySystemError } from "../shared/errors.ts";
import { useCaller } from "./session.ts";
import type { ActorHandle } from "./handle-types.ts";

/** Facts about the running code. Getters of a task or actor return null in a driver. */
export interface RuntimeContext {
  /**
   * The namespace of the session, in which names are looked for where none is given: an actor with
   * a `namespace` of its own is found in that, and finds others in the session's.
   */
  readonly namespace: string;
  /**
   * Aborted when the running call is cancelled. Read in a constructor: aborted when the actor has
   * ended, because its code may go on in a shared thread. In a driver: never aborted.
   */
  readonly signal: AbortSignal;
  /** Returns the id of the worker: the host that runs this code. */
  getWorkerId(): string;
  /** Returns the id of the node that runs this code. */
  getNodeId(): string;
  /** Returns the node's labels: its own and `ray.io/node-id`. */
  getNodeLabels(): Readonly<Record<string, string>>;
  /** Returns the id of the job: all work between an `init` and its `shutdown`. */
  getJobId(): string;
  /** Returns the id of the running call or task. */
  getTaskId(): string | null;
  /** Returns the call's own name, or `Class.method`. */
  getTaskName(): string | null;
  /** Returns `Class.method`, or the name of the task's function. */
  getTaskFunctionName(): string | null;
  /** Returns the id of the actor. */
  getActorId(): string | null;
  /** Returns the actor's name; "" for an actor without a name. */
  getActorName(): string | null;
  /** Returns the held resources: `{}` for an actor that requested none, and in a driver. */
  getAssignedResources(): Amounts;
  /** Returns the id of the placement group in which this code runs; null outside of groups. */
  getPlacementGroupId(): string | null;
  /** Whether that group also gets the actors and tasks that this code starts without a strategy. */
  shouldCaptureChildTasksInPlacementGroup(): boolean;
  /**
   * Returns a handle of the actor itself, which does not keep it alive.
   *
   * @throws RaySystemError outside an actor
   */
  currentActor<Instance extends object>(): ActorHandle<Instance>;
  /** Whether this is a later incarnation of the actor. */
  wasCurrentActorReconstructed(): boolean;
  /**
   * Whether the running call was cancelled. It polls, so that code which holds its thread may ask.
   *
   * @throws RaySystemError in a driver
   */
  isCanceled(): boolean;
}

const never: AbortSignal = new AbortController().signal;

/**
 * Returns the context of the running code. Call it inside the method: it belongs to the call that
 * asks.
 */
export function getRuntimeContext(): RuntimeContext {
  const task = currentTask();
  const actor = task?.actor;
  const caller = useCaller();
  return {
    namespace: currentNamespace(),
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
 * Ends the actor whose method calls it: running calls may end, and queued calls reject with
 * ActorDiedError. So does this call, whatever it does afterwards. The actor is not restarted. Its
 * `__ray_shutdown__` runs last.
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
