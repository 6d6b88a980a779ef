/** Reads a file of lines that another process may still write: each line once. */

import { stat } from "node:fs/promises";
import { readJsonl } from "@rayling/data-proto";
import { TrackingError } from "../../errors.ts";

export class GrowingFile {
  readonly path: string;
  #size = 0;
  #end = 0;
  /** Tells the file from another one at its path. */
  #file = "";

  constructor(path: string) {
    this.path = path;
  }

  /**
   * Passes on what has come since the last time, without lines that were cut off. Rejects with
   * TrackingError TRACKING_FILES for a line of something else, and JsonlError for what cannot be
   * read.
   *
   * @param onAnew called before the first line of a file that was written anew
   * @returns whether there was anything
   */
  async read(onLine: (line: object) => void, onAnew: () => void): Promise<boolean> {
    // There is none before the first line.
    const { size, dev, ino } = await stat(this.path).catch(() => ({ size: 0, dev: 0, ino: 0 }));
    const file = size === 0 ? "" : `${dev}:${ino}`;
    if (size === this.#size && file === this.#file) return false;
    if (this.#size > 0 && (size < this.#size || file !== this.#file)) {
      this.#end = 0;
      onAnew();
    }
    this.#file = file;
    this.#size = size;
    if (size === 0) return true;
    // The last line may be on its way: it is read again next time.
    const options = { places: true, from: this.#end, onMalformed: () => undefined };
    for await (const { line, value, place } of readJsonl(this.path, options)) {
      if (!isLine(value)) {
        throw new TrackingError("TRACKING_FILES", this.path, `line ${line} is none of a run`);
      }
      onLine(value);
      this.#end = place?.end ?? this.#end;
    }
    return true;
  }
}

function isLine(value: unknown): value is object {
  return typeof value === "object" && value !== null && ("step" in value || "type" in value);
}
