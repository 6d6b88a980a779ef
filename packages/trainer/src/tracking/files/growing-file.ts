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
    const isAnew = file !== this.#file || size < Math.max(this.#size, this.#end);
    if (this.#file !== "" && isAnew) {
      this.#end = 0;
      onAnew();
    }
    this.#file = file;
    if (size > 0) await this.#readOn(onLine);
    // A file that cannot be read is no old news the next time.
    this.#size = size;
    return true;
  }

  async #readOn(onLine: (line: object) => void): Promise<void> {
    // The last line may be on its way: it is read again next time.
    const options = { places: true, from: this.#end, onMalformed: () => undefined };
    for await (const { line, value, place } of readJsonl(this.path, options)) {
      if (!isLine(value)) {
        throw new TrackingError("TRACKING_FILES", this.path, `line ${line} is none of a run`);
      }
      onLine(value);
      this.#end = place?.end ?? this.#end;
    }
  }
}

function isLine(value: unknown): value is object {
  return typeof value === "object" && value !== null && ("step" in value || "type" in value);
}
