/** Notes what a caller knows of its calls, where that is wanted (`init({ taskEvents: true })`). */
import type { TaskEvents } from "../../telemetry/task-events.ts";
import { clockMs } from "../../shared/clock.ts";
import type { ActorInfo } from "../../rpc/directory.ts";
import type { ObjectEntry } from "../../store/object-entry.ts";
import type { TaskScope } from "../waits/task-scope.ts";

/** A call, as far as is noted of it. */
interface Noted {
  readonly entry: ObjectEntry;
  readonly owner: { readonly info: ActorInfo | undefined };
  readonly parent: TaskScope | undefined;
}

export function noteSubmit(
  events: TaskEvents,
  { entry, owner, parent }: Noted,
  startMs: number,
): void {
  events.add({
    kind: "submit",
    owner: entry.owner,
    sequence: entry.sequence,
    name: entry.label,
    startMs,
    endMs: clockMs(),
    actorId: owner.info?.actorId,
    parentId: parent?.taskId,
  });
}

export function noteSettle(events: TaskEvents, { entry }: Noted): void {
  const { owner, sequence, label: name } = entry;
  events.add({ kind: "settle", owner, sequence, name, atMs: clockMs(), error: entry.failed });
}
