/** What the clients of actors and tasks need of the runtime they belong to. */
import type { TaskEvents } from "../../inside/task-events.ts";
import type { Encoded } from "../../protocol/codec.ts";
import type { FailureData } from "../../protocol/failure.ts";
import type { Directory } from "../../rpc/directory.ts";
import type { Session } from "../../rpc/session.ts";
import type { ObjectEntry, Producer } from "../../store/object-entry.ts";

/** How long a host that cannot be reached has to be told dead; if it is not, it is out of reach. */
export const outOfReachMs: number = 5000;

export interface ClientLink {
  readonly directory: Directory;
  readonly events: TaskEvents | undefined;
  /** The session with a host, or undefined when it is gone already. */
  session(hostId: string): Promise<Session | undefined>;
  /** An entry of this runtime's own. */
  createEntry(label: string): ObjectEntry;
  /** Gives an entry the value that arrived for it, and takes over the refs inside. */
  settle(entry: ObjectEntry, value: Encoded, maker?: Producer): void;
  /** A value arrived that nobody looks at: the refs inside are not ours. */
  decline(value: Encoded): void;
  readCount(value: Encoded): number;
  readFailure(error: Encoded): FailureData;
  describe(error: Error): FailureData;
  /** Whether values of these entries are away: then they are brought, and `resume` is called when all are there or have failed. */
  bringing(entries: readonly ObjectEntry[], resume: () => void): boolean;
  /** Whether user code's failure is to be tried again. */
  retryable(failure: FailureData, policy: boolean | readonly string[]): boolean;
}
