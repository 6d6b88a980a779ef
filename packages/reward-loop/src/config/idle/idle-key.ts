/** A key that is set, and that nothing would read. */
export interface IdleKey {
  /** At its place of today. */
  readonly key: string;
  readonly value: unknown;
  /** Why nothing does, behind its value. */
  readonly why: string;
  /** What to set in its place, if that is one key. */
  readonly instead?: string;
}
