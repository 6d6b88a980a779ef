/**
 * The limits of an HTTP endpoint, and their defaults.
 */

export interface HttpLimits {
  /**
   * The most connections of clients. Beyond it the oldest idle one is cut; when none is idle, the
   * new one gets 503. Default 256.
   */
  readonly maxConnections: number;
  /**
   * The most requests of one connection, one after the other; the last one closes it. Default
   * 10,000.
   */
  readonly maxRequestsPerConnection: number;
  /** The most requests under way on all connections; beyond it 503. Default 1,024. */
  readonly maxRequests: number;
  /**
   * The most requests of one connection that arrive before the answer to the first; beyond it 429.
   * Default 16.
   */
  readonly maxPipelined: number;
  /** The most time for the head of a request, and for an idle connection. Default 5,000. */
  readonly headersTimeoutMs: number;
  /** The most time for a whole request to arrive. Default 5,000. */
  readonly requestTimeoutMs: number;
  /** The most bytes of a request's target. Default 8,192. */
  readonly maxTargetBytes: number;
  /** The most bytes of a request's headers. Default 16,384. */
  readonly maxHeaderBytes: number;
  /** The most bytes of one body. Default 0. */
  readonly maxBodyBytes: number;
  /** The most bytes of all bodies in memory; beyond it 503. Default: `maxBodyBytes`. */
  readonly maxBufferedBytes: number;
}

/** @param given a limit that is undefined has its default */
export function limitsOf(given: Partial<HttpLimits> = {}): HttpLimits {
  const said = Object.entries(given).filter(([, value]) => value !== undefined);
  const limits = { ...standard, ...(Object.fromEntries(said) as Partial<HttpLimits>) };
  return { maxBufferedBytes: limits.maxBodyBytes, ...limits };
}

const standard: Omit<HttpLimits, "maxBufferedBytes"> = {
  maxConnections: 256,
  maxRequestsPerConnection: 10_000,
  maxRequests: 1024,
  maxPipelined: 16,
  headersTimeoutMs: 5000,
  requestTimeoutMs: 5000,
  maxTargetBytes: 8192,
  maxHeaderBytes: 16_384,
  maxBodyBytes: 0,
};
