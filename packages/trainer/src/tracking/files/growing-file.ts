/** Reads a file of lines that another process may still write: each line once. */

import { stat } from "node:fs/promises";
import { LineMarks, readJsonl } from "@rayling/data-proto";
import { TrackingError } from "../../errors.ts";

export class GrowingFile {
  readonly path: string;
  #size = 0;
  #mtimeMs = 0;
  #end = 0;
  readonly #marks: LineMarks = new LineMarks();
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
    const none = { size: 0, dev: 0, ino: 0, mtimeMs: 0 };
    const { size, dev, ino, mtimeMs } = await stat(this.path).catch(() => none);
    const file = size === 0 ? "" : `${dev}:${ino}`;
    if (size === this.#size && file === this.#file && mtimeMs === this.#mtimeMs) return false;
    const isShorter = size < Math.max(this.#size, this.#end);
    const isAnew = file !== this.#file || isShorter || !(await this.#marks.areIn(this.path));
    if (this.#file !== "" && isAnew) {
      this.#end = 0;
      this.#marks.clear();
      onAnew();
    }
    this.#file = file;
    if (size > 0) await this.#readOn(onLine);
    // A file that cannot be read is no old news the next time.
    this.#size = size;
    this.#mtimeMs = mtimeMs;
    return true;
  }

  async #readOn(onLine: (line: object) => void): Promise<void> {
    // The last line may be on its way: it is read again next time.
    const options = { places: true, from: this.#end, onMalformed: () => undefined };
    for await (const record of readJsonl(this.path, options)) {
      const { line, value, place } = record;
      if (!isLine(value)) {
        throw new TrackingError("TRACKING_FILES", this.path, `line ${line} is none of a run`);
      }
      onLine(value);
      this.#marks.add(record);
      this.#end = place?.end ?? this.#end;
    }
  }
}

function isLine(value: unknown): value is object {
  return typeof value === "object" && value !== null && ("step" in value || "type" in value);
}
