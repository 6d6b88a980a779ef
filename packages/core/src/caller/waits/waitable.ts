/** Something that becomes ready: an object, or the next item of a stream. */
export interface Waitable {
  readonly isReady: boolean;
  /** Calls back once when it is ready: at once if it is. */
  watch(watcher: () => void): void;
  unwatch(watcher: () => void): void;
  /**
   * The number of the last `wait` it was given to: finds an entry that stands twice in a list
   * without a table of the list.
   */
  wave: number;
}
