/** A key that is set, and that nothing would read. */
export interface UnusedKey {
  /** The key at its present place. */
  readonly key: string;
  readonly value: unknown;
  /** Why nothing does, behind its value. */
  readonly why: string;
  /** The key to set instead, if there is exactly one. */
  readonly instead?: string;
}
