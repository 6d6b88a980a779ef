/**
 * Task events as a trace in Chrome's JSON format, which Perfetto opens.
 *
 * A process of the trace is a node, and a thread of it is a host or the driver. Slices of one
 * thread must nest, but calls of an async actor overlap: these go to further lanes of their host.
 * Arrows lead from the submission of a call to its execution.
 */
import type { TaskEvent } from "../../telemetry/task-events.ts";
import type { TraceEvent } from "../../rpc/state.ts";

/** The events of one runtime, and its place. */
export interface Track {
  readonly runtimeId: string;
  readonly nodeId: string;
  readonly events: readonly TaskEvent[];
}

interface Slice {
  readonly event: Exclude<TaskEvent, { kind: "settle" }>;
  readonly startNs: number;
  readonly endNs: number;
  /** The task that it belongs to. */
  readonly taskId: string | undefined;
}

interface Place {
  readonly pid: number;
  readonly tid: number;
  readonly startNs: number;
}

export function toTrace(tracks: readonly Track[]): readonly TraceEvent[] {
  const baseMs = earliest(tracks);
  const trace: TraceEvent[] = [];
  const pids = new Map<string, number>();
  const submits = new Map<string, Place>();
  const executes = new Map<string, Place>();
  let tids = 0;
  for (const { runtimeId, nodeId, events } of tracks) {
    let pid = pids.get(nodeId);
    if (pid === undefined) {
      pid = pids.size + 1;
      pids.set(nodeId, pid);
      trace.push({ ph: "M", name: "process_name", pid, tid: 0, args: { name: nodeId } });
    }
    for (const [lane, slices] of lanesOf(slicesOf(events, baseMs)).entries()) {
      const tid = (tids += 1);
      const name = lane === 0 ? runtimeId : `${runtimeId} (${lane + 1})`;
      trace.push({ ph: "M", name: "thread_name", pid, tid, args: { name } });
      for (const slice of slices) {
        pushSlice(trace, slice, pid, tid);
        const { event, startNs } = slice;
        if (event.kind === "wait") continue;
        const places = event.kind === "submit" ? submits : executes;
        const taskId = `${event.owner}:${event.sequence}`;
        if (!places.has(taskId)) places.set(taskId, { pid, tid, startNs });
      }
    }
  }
  pushFlows(trace, submits, executes);
  return trace;
}

function earliest(tracks: readonly Track[]): number {
  let base = Infinity;
  for (const { events } of tracks) {
    for (const event of events) {
      if (event.kind !== "settle") base = Math.min(base, event.startMs);
    }
  }
  return base;
}

/** Returns the slices in order of time, enclosing ones first. */
function slicesOf(events: readonly TaskEvent[], baseMs: number): readonly Slice[] {
  const slices: Slice[] = [];
  for (const event of events) {
    if (event.kind === "settle") continue;
    slices.push({
      event,
      startNs: Math.round((event.startMs - baseMs) * 1e6),
      endNs: Math.round((event.endMs - baseMs) * 1e6),
      taskId: taskOf(event),
    });
  }
  return slices.toSorted((left, right) => left.startNs - right.startNs || right.endNs - left.endNs);
}

function taskOf(event: Slice["event"]): string | undefined {
  if (event.kind === "wait") return event.taskId;
  return event.kind === "submit" ? event.parentId : `${event.owner}:${event.sequence}`;
}

/**
 * Puts each slice into a lane where it follows the earlier ones or lies within the open one; a lane
 * whose open slice belongs to its own task comes first.
 */
function lanesOf(slices: readonly Slice[]): readonly (readonly Slice[])[] {
  const lanes: { readonly slices: Slice[]; readonly open: Slice[] }[] = [];
  for (const slice of slices) {
    for (const { open } of lanes) {
      while ((open.at(-1)?.endNs ?? Infinity) <= slice.startNs) open.pop();
    }
    const fitting = lanes.filter(({ open }) => (open.at(-1)?.endNs ?? Infinity) >= slice.endNs);
    const own = fitting.find(({ open }) => open.some(({ taskId }) => taskId === slice.taskId));
    let lane = own ?? fitting.find(({ open }) => open.length === 0) ?? fitting[0];
    if (lane === undefined) {
      lane = { slices: [], open: [] };
      lanes.push(lane);
    }
    lane.slices.push(slice);
    lane.open.push(slice);
  }
  return lanes.map((lane) => lane.slices);
}

function pushSlice(
  trace: TraceEvent[],
  { event, startNs, endNs }: Slice,
  pid: number,
  tid: number,
): void {
  const push = (
    { name, cat = name }: { readonly name: string; readonly cat?: string },
    fromNs: number,
    toNs: number,
    args: object = {},
  ): void => {
    const [ts, dur] = [fromNs / 1000, (toNs - fromNs) / 1000];
    trace.push({ ph: "X", name, cat, pid, tid, ts, dur, args: { ...args } });
  };
  switch (event.kind) {
    case "wait":
      push({ name: `ray.${event.what}` }, startNs, endNs, {
        objects: event.count,
        task_id: event.taskId,
      });
      break;
    case "submit":
      push({ name: `submit ${event.name}`, cat: "submit_task" }, startNs, endNs, argsOf(event));
      break;
    default: {
      const decodedNs = startNs + Math.round((event.decodedMs - event.startMs) * 1e6);
      const middle = Math.min(Math.max(decodedNs, startNs), endNs);
      push({ name: `task::${event.name}` }, startNs, endNs, {
        ...argsOf(event),
        ok: event.ok,
      });
      push({ name: "task:deserialize_arguments" }, startNs, middle);
      push({ name: "task:execute" }, middle, endNs);
    }
  }
}

function argsOf({ owner, sequence, name }: Exclude<Slice["event"], { kind: "wait" }>): object {
  return { task_id: `${owner}:${sequence}`, name };
}

/** Adds an arrow only where both ends are known: a viewer shows nothing for half an arrow. */
function pushFlows(
  trace: TraceEvent[],
  submits: ReadonlyMap<string, Place>,
  executes: ReadonlyMap<string, Place>,
): void {
  let id = 0;
  for (const [taskId, from] of submits) {
    const to = executes.get(taskId);
    if (to === undefined) continue;
    id += 1;
    const arrow = { name: "submit", cat: "flow", id };
    trace.push({ ph: "s", ...arrow, pid: from.pid, tid: from.tid, ts: from.startNs / 1000 });
    trace.push({ ph: "f", ...arrow, bp: "e", pid: to.pid, tid: to.tid, ts: to.startNs / 1000 });
  }
}
