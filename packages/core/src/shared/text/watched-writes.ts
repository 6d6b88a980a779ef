/** Looks at the writes of a stream: a line that is drawn again makes room for them. */
import type { WriteStream } from "node:tty";

type Write = (text: string | Uint8Array) => boolean;

export interface WatchedWrites {
  /** Writes as before, without being looked at. */
  readonly write: Write;
  /** Gives the stream back. */
  close(): void;
}

/** @param before runs before each write of others */
export function watchWrites(
  stream: WriteStream,
  before: (chunk: string | Uint8Array) => void,
): WatchedWrites {
  const own = Object.getOwnPropertyDescriptor(stream, "write");
  const write = stream.write.bind(stream);
  const watched = (...given: Parameters<WriteStream["write"]>): boolean => {
    before(given[0]);
    return write(...given);
  };
  Object.defineProperty(stream, "write", { value: watched, configurable: true, writable: true });
  return {
    write: (text) => write(text),
    close: () => {
      // The method usually belongs to the class.
      if (own === undefined) Reflect.deleteProperty(stream, "write");
      else Object.defineProperty(stream, "write", own);
    },
  };
}
