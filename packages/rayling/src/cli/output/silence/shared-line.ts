/** The memory that silence.ts and its thread share, and what is said of the time. */

/** The data of the thread. */
export interface SilenceMemory {
  readonly memory: SharedArrayBuffer;
  /** The time that all others count from. */
  readonly startMs: number;
}

/** Places of the numbers. */
export const place = {
  lock: 0,
  writtenMs: 1,
  sinceMs: 2,
  /** Bytes of the text; 0: there is nothing to say. */
  length: 3,
  /** Whether the thread's line stands on the terminal. */
  isDrawn: 4,
  columns: 5,
  fd: 6,
  isTTY: 7,
  isClosed: 8,
  /** When the thread spoke last. */
  spokenMs: 9,
} as const;

/** Where the text begins. */
export const textStart = 64;
/** The longest text. */
export const textBytes = 512;

/** Begins a line of a terminal anew. */
export const lineBreaker = "\r\u001b[2K";

/** Returns the line of a pipe that says what goes on. */
export function pipedLine(text: string): string {
  return `  ... ${text}`;
}

/** Milliseconds without output until the thread speaks: two seconds are silence. */
export const quietMs = { terminal: 1500, pipe: 1800 } as const;

/**
 * Silence that counts before the first line: a busy machine takes that long to start Node and the
 * thread, as seen with eight starts at once on two cores.
 */
export const unseenMs = 800;

/** Returns the text with the time that it goes on already, in whole seconds. */
export function goingOn(text: string, ms: number): string {
  const seconds = Math.floor(ms / 1000);
  return seconds < 1 ? text : `${text} (${seconds} s so far)`;
}
