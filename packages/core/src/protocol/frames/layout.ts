/**
 * Sizes and marks of frames.
 */

/** Room for the fixed fields of a frame or of a body, in bytes. */
export const headRoom = 64;
/** A body has its size, its counts, and its bytes or their place. */
export const leastBodyBytes = 12;
/** Bytes of a size that may be of any memory. */
export const sizeBytes = 8;

/** A bit in the count of buffers: the buffers are the user's own. */
export const liveBit: number = 2 ** 31;
/** A bit in the count of buffers: the value stays on its host. */
export const locatedBit: number = 2 ** 30;
/** A bit in the count of buffers: the value is the state of a signal. */
export const signalBit: number = 2 ** 29;

/** A bit in the count of buffers: the value is the context of a trace. */
export const traceBit: number = 2 ** 28;

/** The limit for the id of an object or of a holder: ids of runtimes, with a number or a word. */
export const maxIdBytes = 1024;

/**
 * Calls with names of their own share the first route numbers, so that the peer keeps only this
 * many of them.
 */
export const namedRoutes = 256;
