/**
 * Errors of objects: the value is lost, has no room, or was changed.
 *
 * `ObjectLostError` is the base of every kind of loss, as in Ray. The fields name the object by its
 * id.
 */
import { RayError } from "./base.ts";

/**
 * The value of an object is gone. The subclasses say how it was lost; this class itself says that
 * its owner no longer holds it. Code "OBJECT_LOST".
 */
export class ObjectLostError extends RayError {
  /** The object, as messages and the state API give it. */
  readonly objectId: string;
  constructor(objectId: string, reason?: string, options?: ErrorOptions) {
    super("OBJECT_LOST", reason ?? `object ${objectId} is no longer held by its owner`, options);
    this.objectId = objectId;
  }
}

/** The runtime that owned an object is gone, and the value with it. Code "OWNER_DIED". */
export class OwnerDiedError extends ObjectLostError {
  override readonly code: string = "OWNER_DIED";
  constructor(objectId: string, reason: string) {
    super(objectId, `the owner of object ${objectId} is gone: ${reason}`);
  }
}

/**
 * The value lives on another host, and that host did not send it within `timeoutMs` milliseconds.
 * Code "OBJECT_FETCH_TIMED_OUT".
 */
export class ObjectFetchTimedOutError extends ObjectLostError {
  override readonly code: string = "OBJECT_FETCH_TIMED_OUT";
  /** The time that has passed, in milliseconds. */
  readonly timeoutMs: number;
  /** @param why what prevented the transfer, when that is known */
  constructor(objectId: string, hostId: string, timeoutMs: number, why?: string) {
    const rest = why === undefined ? "" : `: ${why}`;
    super(
      objectId,
      `object ${objectId} was not sent by host ${hostId} within ${timeoutMs} ms${rest}`,
    );
    this.timeoutMs = timeoutMs;
  }
}

/**
 * The owner released an object while this ref was held: the reference counts were wrong, which is a
 * defect of the runtime. Code "REFERENCE_COUNTING".
 */
export class ReferenceCountingError extends ObjectLostError {
  override readonly code: string = "REFERENCE_COUNTING";
  constructor(objectId: string) {
    super(
      objectId,
      `object ${objectId} was released by its owner while a reference to it was held here`,
    );
  }
}

/** The reason why a lost value cannot be reconstructed by running its task again. */
export type ReconstructionFailure =
  | "max-attempts-exceeded"
  | "lineage-evicted"
  | "put"
  | "retries-disabled"
  | "reference-not-found"
  | "lineage-disabled";

const reasonTexts: Readonly<Record<ReconstructionFailure, string>> = {
  "max-attempts-exceeded": "its task was run again as often as maxRetries allows",
  "lineage-evicted": "what is needed to run its task again was dropped to save memory",
  put: "it was made by put, and there is no task to run again",
  "retries-disabled": "its call may not be run again (maxRetries or maxTaskRetries is 0)",
  "reference-not-found": "its owner does not know it any more",
  "lineage-disabled": "its task was not recorded",
};

/**
 * The value is lost and cannot be reconstructed. `reason` says why, and `cause` says how it was
 * lost. Code "OBJECT_RECONSTRUCTION_FAILED".
 */
export class ObjectReconstructionFailedError extends ObjectLostError {
  override readonly code: string = "OBJECT_RECONSTRUCTION_FAILED";
  /** Why the object cannot be made again. */
  readonly reason: ReconstructionFailure;
  constructor(objectId: string, label: string, reason: ReconstructionFailure, loss: Error) {
    super(
      objectId,
      `object ${objectId} (${label}) is lost and cannot be made again: ${reasonTexts[reason]}; it was lost because ${loss.message}`,
      { cause: loss },
    );
    this.reason = reason;
  }
}

/**
 * A value was changed while others read it in place. Only development mode finds this. Code
 * "OBJECT_MUTATED".
 */
export class ObjectMutatedError extends RayError {
  /** The object, as messages and the state API give it. */
  readonly objectId: string;
  /** The origin of the value: "put", `Class.method` or a task's name. */
  readonly label: string;
  constructor(objectId: string, label: string) {
    super(
      "OBJECT_MUTATED",
      `object ${objectId}, made by ${label}, was changed after it was made: big buffers are shared by all who get them, so copy one before you write to it`,
    );
    this.objectId = objectId;
    this.label = label;
  }
}

/**
 * A value has no room: memory is used up, and the values in it could not be spilled to disk. No
 * stored value is lost. Code "OBJECT_STORE_FULL".
 */
export class ObjectStoreFullError extends RayError {
  /** The origin of the value: "put", `Class.method` or a task's name. */
  readonly label: string;
  /** The size of the value, in bytes. */
  readonly byteLength: number;
  constructor(label: string, byteLength: number, why: string, options?: ErrorOptions) {
    super(
      "OBJECT_STORE_FULL",
      `no room for ${byteLength} bytes of ${label} in the object store: ${why}`,
      options,
    );
    this.label = label;
    this.byteLength = byteLength;
  }
}

/**
 * A value has no room, and the disk of `directory` is full. No stored value is lost. Code
 * "OUT_OF_DISK".
 */
export class OutOfDiskError extends RayError {
  /** The value's name: `Class.method`, a task's function or "put". */
  readonly label: string;
  /** The size of the value, in bytes. */
  readonly byteLength: number;
  /** The directory of the session's files. */
  readonly directory: string;
  constructor(label: string, byteLength: number, directory: string, options?: ErrorOptions) {
    super(
      "OUT_OF_DISK",
      `no room for ${byteLength} bytes of ${label}: the object store is full, and so is the disk of ${directory}`,
      options,
    );
    this.label = label;
    this.byteLength = byteLength;
    this.directory = directory;
  }
}
