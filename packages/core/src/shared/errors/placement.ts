/**
 * Errors of actors and tasks that cannot be placed or lose their place for good. Each carries the
 * reason as one line for people.
 */
import { RayError } from "./base.ts";

/**
 * The node that the actor must run on is gone, never existed, or lacks the resources. Code
 * "ACTOR_UNSCHEDULABLE".
 */
export class ActorUnschedulableError extends RayError {
  /** The actor's id. */
  readonly actorId: string;
  /** The name of the actor's class. */
  readonly className: string;
  /** Why no node can run it. */
  readonly reason: string;
  constructor(actorId: string, className: string, reason: string) {
    super("ACTOR_UNSCHEDULABLE", `actor ${className} (${actorId}) cannot be placed: ${reason}`);
    this.actorId = actorId;
    this.className = className;
    this.reason = reason;
  }
}

/**
 * The node that the task must run on is gone, never existed, or lacks the resources. Code
 * "TASK_UNSCHEDULABLE".
 */
export class TaskUnschedulableError extends RayError {
  /** The name of the task's function. */
  readonly functionName: string;
  /** Why no node can run it. */
  readonly reason: string;
  constructor(functionName: string, reason: string) {
    super("TASK_UNSCHEDULABLE", `task ${functionName} cannot be placed: ${reason}`);
    this.functionName = functionName;
    this.reason = reason;
  }
}

/**
 * The placement group of the actor was removed, and the actor with it. Code
 * "ACTOR_PLACEMENT_GROUP_REMOVED".
 */
export class ActorPlacementGroupRemoved extends RayError {
  /** The actor's id. */
  readonly actorId: string;
  /** The name of the actor's class. */
  readonly className: string;
  /** Why the placement group is gone. */
  readonly reason: string;
  constructor(actorId: string, className: string, reason: string) {
    super(
      "ACTOR_PLACEMENT_GROUP_REMOVED",
      `actor ${className} (${actorId}) lost its place: ${reason}`,
    );
    this.actorId = actorId;
    this.className = className;
    this.reason = reason;
  }
}

/**
 * The placement group of the task was removed, and the task with it. Code
 * "TASK_PLACEMENT_GROUP_REMOVED".
 */
export class TaskPlacementGroupRemoved extends RayError {
  /** The name of the task's function. */
  readonly functionName: string;
  /** Why the placement group is gone. */
  readonly reason: string;
  constructor(functionName: string, reason: string) {
    super("TASK_PLACEMENT_GROUP_REMOVED", `task ${functionName} lost its place: ${reason}`);
    this.functionName = functionName;
    this.reason = reason;
  }
}

/**
 * The node of a task's worker is gone and the retries of the task are used up. The task may have
 * run. Code "NODE_DIED".
 */
export class NodeDiedError extends RayError {
  /** The name of the task's function. */
  readonly functionName: string;
  /** Why the node is dead. */
  readonly reason: string;
  constructor(functionName: string, reason: string) {
    super("NODE_DIED", `task ${functionName} lost its node: ${reason}`);
    this.functionName = functionName;
    this.reason = reason;
  }
}
