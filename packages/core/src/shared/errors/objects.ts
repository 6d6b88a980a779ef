/**
 * What can go wrong with an object: its value is lost, it does not fit, or it was changed.
 *
 * `ObjectLostError` is the base of every way to lose one, as in Ray; the fields name the object by its id.
 */
import { RayError } from "./base.ts";

/** The value of an object is gone. The subclasses say how; this class itself says that nobody holds it any more. */
export class ObjectLostError extends RayError {
  readonly objectId: string;
  constructor(objectId: string, reason?: string, options?: ErrorOptions) {
    super("OBJECT_LOST", reason ?? `object ${objectId} is no longer held by its owner`, options);
    this.objectId = objectId;
  }
}

/** The runtime that owned an object is gone, and the value with it. */
export class OwnerDiedError extends ObjectLostError {
  override readonly code: string = "OWNER_DIED";
  constructor(objectId: string, reason: string) {
    super(objectId, `the owner of object ${objectId} is gone: ${reason}`);
  }
}

/** The value lives on another host, and that host did not send it in time. */
export class ObjectFetchTimedOutError extends ObjectLostError {
  override readonly code: string = "OBJECT_FETCH_TIMED_OUT";
  readonly timeoutMs: number;
  /** @param why what stood in the way, where it is known */
  constructor(objectId: string, hostId: string, timeoutMs: number, why?: string) {
    const rest = why === undefined ? "" : `: ${why}`;
    super(
      objectId,
      `object ${objectId} was not sent by host ${hostId} within ${timeoutMs} ms${rest}`,
    );
    this.timeoutMs = timeoutMs;
  }
}

/** The owner let an object go while this ref was held: the counts of who holds it were wrong, which is a defect of the runtime. */
export class ReferenceCountingError extends ObjectLostError {
  override readonly code: string = "REFERENCE_COUNTING";
  constructor(objectId: string) {
    super(
      objectId,
      `object ${objectId} was let go by its owner while a reference to it was held here`,
    );
  }
}

/** Why a lost value is not made again by running its task. */
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
  "lineage-disabled": "its task was not noted",
};

/** The value is lost and cannot be made again. `reason` says why, `cause` how it was lost. */
export class ObjectReconstructionFailedError extends ObjectLostError {
  override readonly code: string = "OBJECT_RECONSTRUCTION_FAILED";
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

/** Somebody wrote to a value that others read in place. Found in development mode only. */
export class ObjectMutatedError extends RayError {
  readonly objectId: string;
  /** What made it: "put", `Class.method` or a task's name. */
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

/** A value does not fit: memory is used up, and what is there could not be moved to disk. Nothing that was kept is lost. */
export class ObjectStoreFullError extends RayError {
  /** What was to be kept: "put", `Class.method` or a task's name. */
  readonly label: string;
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

/** A value does not fit, and the disk of `directory` is full. Nothing that was kept is lost. */
export class OutOfDiskError extends RayError {
  readonly label: string;
  readonly byteLength: number;
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
