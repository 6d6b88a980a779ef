/** The parts of a runtime that the clients of its actors and tasks need. */
import type { TaskEvents } from "../../telemetry/task-events.ts";
import type { Codec, Encoded } from "../../protocol/codec.ts";
import type { FailureData } from "../../protocol/failure.ts";
import type { Pending } from "../../protocol/message.ts";
import type { Directory } from "../../rpc/directory.ts";
import type { Session } from "../../rpc/session/session.ts";
import type { ObjectEntry } from "../../store/object-entry.ts";
import type { Store } from "../../store/store.ts";

export interface ClientLink {
  readonly directory: Directory;
  readonly events: TaskEvents | undefined;
  readonly values: ClientValues;
  readonly objects: ClientObjects;
  /** The session with a host. Rejects when the host is gone. */
  session(hostId: string): Promise<Session>;
}

/** See Values. */
export interface ClientValues {
  readonly codec: Codec;
  decline(value: Encoded): void;
  describe(thrown: unknown): FailureData;
  readFailure(error: Encoded): FailureData;
}

/** See Objects. */
export interface ClientObjects {
  readonly store: Store;
  settle(entry: ObjectEntry, value: Encoded, maker?: Pending): void;
  bringing(entries: readonly ObjectEntry[], resume: () => void): boolean;
}
