/** How much one request may ask, and all of them together. */
export interface ServeLimits {
  /** Bytes of one body; four of the largest are kept at a time. */
  readonly maxBodyBytes: number;
  /** Samples of one request. */
  readonly maxSamples: number;
  /** Requests under way. */
  readonly maxRequests: number;
  readonly maxConnections: number;
  /** How long a connection may say nothing, and the head of a request may take. */
  readonly idleTimeoutMs: number;
}
