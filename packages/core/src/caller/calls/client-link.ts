/** The parts of a runtime that the clients of its actors and tasks need. */
import type { TaskEvents } from "../../inside/task-events.ts";
import type { Directory } from "../../rpc/directory.ts";
import type { Session } from "../../rpc/session.ts";
import type { Objects } from "../objects/objects.ts";
import type { Values } from "../values.ts";

/** How long the directory has to say that a host which cannot be reached is dead. */
export const outOfReachMs: number = 5000;

export interface ClientLink {
  readonly directory: Directory;
  readonly events: TaskEvents | undefined;
  readonly values: Values;
  readonly objects: Objects;
  /** The session with a host. Rejects when the host is gone. */
  session(hostId: string): Promise<Session>;
}
