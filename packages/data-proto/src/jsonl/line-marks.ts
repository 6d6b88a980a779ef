/**
 * The first and the last line that were read of a file which is read on as it grows. A file that
 * was written anew in place (by a truncating writer, cp, scp, rsync --inplace) keeps its number in
 * the file system and may be longer than before: only its lines tell that it is another one.
 */
import { deepEqual } from "../deep-equal.ts";
import { JsonlError } from "../errors.ts";
import { readJsonl } from "./reader.ts";
import type { JsonlRecord } from "./reader.ts";

/** Tells a file of lines that grew from one that was written anew in its place. */
export class LineMarks {
  #first: JsonlRecord | undefined;
  #last: JsonlRecord | undefined;

  /** Takes each record in its order, with its `place`. Its value must stay as it was read. */
  add(record: JsonlRecord): void {
    this.#first ??= record;
    this.#last = record;
  }

  /** Forgets all lines: the file is read from its start. */
  clear(): void {
    this.#first = undefined;
    this.#last = undefined;
  }

  /**
   * Resolves to whether both lines still stand where they were read, or none was read. False also
   * where the file cannot be read.
   */
  async areIn(path: string): Promise<boolean> {
    // The last one first: it is the one that differs where a file is being written anew.
    for (const mark of new Set([this.#last, this.#first])) {
      if (mark !== undefined && !(await isIn(path, mark))) return false;
    }
    return true;
  }
}

async function isIn(path: string, { value, place }: JsonlRecord): Promise<boolean> {
  if (place === undefined) return true;
  const options = { places: true, from: place.start, onMalformed: () => undefined };
  try {
    for await (const found of readJsonl(path, options)) {
      const isThere = found.place?.start === place.start && found.place.end === place.end;
      return isThere && deepEqual(found.value, value);
    }
    return false;
  } catch (error) {
    if (error instanceof JsonlError) return false;
    throw error;
  }
}
