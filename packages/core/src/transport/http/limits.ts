/** The limits of an HTTP endpoint, and what they are unless its owner says otherwise. */

export interface HttpLimits {
  /** From clients. Beyond it the oldest that does nothing is cut; where none is, the new one is answered 503. Default 256. */
  readonly maxConnections: number;
  /** Requests of one connection, one after the other; it is closed after the last. Default 10,000. */
  readonly maxRequestsPerConnection: number;
  /** Requests under way of all connections; beyond it 503. Default 1,024. */
  readonly maxRequests: number;
  /** Requests under way of one connection, which come before the answer to the first; beyond it 429. Default 16. */
  readonly maxPipelined: number;
  /** How long a head may take, and a connection may say nothing. Default 5,000. */
  readonly headersTimeoutMs: number;
  /** How long a whole request may take to arrive. Default 5,000. */
  readonly requestTimeoutMs: number;
  /** Default 8,192. */
  readonly maxTargetBytes: number;
  /** Default 16,384. */
  readonly maxHeaderBytes: number;
  /** Default 0. */
  readonly maxBodyBytes: number;
  /** All bodies together that are kept at a time; beyond it 503. Default: as `maxBodyBytes`. */
  readonly maxBufferedBytes: number;
}

/** @param given undefined stands for the default */
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
