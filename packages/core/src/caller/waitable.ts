/** Something that becomes ready: an object, or the next item of a stream. */
export interface Waitable {
  readonly isReady: boolean;
  /** Calls back once when it is ready: at once if it is. */
  watch(watcher: () => void): void;
  unwatch(watcher: () => void): void;
}
