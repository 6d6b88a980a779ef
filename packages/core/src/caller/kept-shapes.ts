/**
 * One instance of each class of which every call makes another, as its constructor leaves it, kept
 * as long as the thread.
 *
 * V8 compiles hot code for the hidden classes of the objects that it has seen, and drops the code
 * when a hidden class ends with its last object. A thread that collects garbage between two calls
 * would begin anew (measured: one call at a time, with pauses, 19.7 us of CPU in place of 22.5).
 */
import { Cursor } from "../protocol/frames/cursor.ts";
import { ObjectEntry } from "../store/object-entry.ts";
import { ObjectRef } from "../store/object-ref.ts";
import { AnyArguments, CallArguments } from "./calls/call-arguments.ts";
import { Call, type CallOwner } from "./calls/call.ts";
import { Wait } from "./waits/stuck-watch.ts";
import { outsideTasks } from "./waits/task-scope.ts";

const bytes = new Uint8Array(0);
const entry = new ObjectEntry("", 0, "");
const args = new CallArguments({ bytes, start: 0, end: 0 });
const route = { target: "", method: "" };
const plan = { route, maxRetries: 0, retryExceptions: false };
// Nothing is asked of its owner, and the task that imports this is not its parent.
const call = outsideTasks(() => new Call({} as CallOwner, plan, args, entry));
// Not by the name of an export: in what is published it would take that name.
const oneWait = new Wait("get");
// Times have fractions: an instance without any is of another hidden class.
oneWait.sinceMs = oneWait.nextLookMs = oneWait.lookAgainMs = 0.5;

export const keptShapes: readonly object[] = [
  call,
  args,
  new AnyArguments(args.values, [], undefined),
  entry,
  new ObjectRef(entry),
  oneWait,
  new Cursor({ bytes, buffers: [] }, false),
];
