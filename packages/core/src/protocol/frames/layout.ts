/** Sizes and marks of frames. */

/** Room for the fixed fields of a frame or of a body. */
export const headRoom = 64;
/** A body is its size, its counts, and its bytes or where they are. */
export const leastBodyBytes = 12;
/** A size, where it may be of any memory. */
export const sizeBytes = 8;

/** Beside the count of buffers: they are the user's own. */
export const liveBit: number = 2 ** 31;
/** The value is elsewhere. */
export const locatedBit: number = 2 ** 30;
/** The state of a signal. */
export const signalBit: number = 2 ** 29;

/** An object or who holds it: ids of runtimes, with a number or a word. */
export const maxIdBytes = 1024;

/** Calls with names of their own share the first route numbers: the peer keeps no more of them. */
export const namedRoutes = 256;
