/**
 * Gives a new thread room for what it allocates until it answers its first call: 10 MB.
 *
 * V8 begins with a young generation of 1 MB and copies what survives, four times, until it has
 * grown; that took a fifth of the time of a start. The size is a flag of the process, which V8
 * reads when it makes a heap, so it is set for as long as threads start. It does not exceed the
 * limit of a thread that has one, and it is no part of the flags by which V8 accepts cached code.
 */
import { setFlagsFromString } from "node:v8";
import { threadSlot } from "../../shared/thread-slot.ts";

/** More does not make a start faster. */
const semiSpaceMb = 8;

const starting: { count: number } = threadSlot("starting-threads", () => ({ count: 0 }));

/** The events of a thread: its heap exists, it has ended. */
interface Started {
  once(event: "online" | "exit", listener: () => void): unknown;
}

/** @param start makes the thread; an error of it comes through */
export function withRoomToStart<Thread extends Started>(start: () => Thread): Thread {
  if (isChosen()) return start();
  if (starting.count === 0) setSemiSpace(semiSpaceMb);
  starting.count += 1;
  let isOver = false;
  const end = (): void => {
    if (isOver) return;
    isOver = true;
    starting.count -= 1;
    if (starting.count === 0) setSemiSpace(0);
  };
  try {
    const thread = start();
    thread.once("online", end);
    thread.once("exit", end);
    return thread;
  } catch (error) {
    end();
    throw error;
  }
}

/** @param mb 0: V8's own choice */
function setSemiSpace(mb: number): void {
  setFlagsFromString(`--min-semi-space-size=${mb}`);
}

function isChosen(): boolean {
  const flags = [...process.execArgv, process.env["NODE_OPTIONS"] ?? ""].join(" ");
  return /min[-_]semi[-_]space[-_]size/.test(flags);
}
