/** The memory that silence.ts and its thread share, and what is said of the time. */

/** The data of the thread. */
export interface SilenceMemory {
  readonly memory: SharedArrayBuffer;
}

/** Places of the numbers. */
export const place = {
  lock: 0,
  /** Bytes of the text; 0: there is nothing to say. */
  length: 1,
  /** Whether the thread's line stands on the terminal. */
  isDrawn: 2,
  columns: 3,
  fd: 4,
  isTTY: 5,
  isClosed: 6,
} as const;

/** Places of the times, which have 64 bits: 32 are 24 days of milliseconds. */
export const timePlace = {
  writtenMs: 0,
  sinceMs: 1,
  /** When the thread spoke last. */
  spokenMs: 2,
} as const;

/** Where the times begin. */
export const timesStart = 64;
/** Where the text begins. */
export const textStart = 128;
/** The longest text. */
export const textBytes = 512;

/**
 * Returns the milliseconds of the machine's monotonic clock, which all threads share. The wall
 * clock may be set.
 */
export function nowMs(): number {
  return Number(process.hrtime.bigint() / 1_000_000n);
}

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
