/**
 * The file of a reward log that is read on as it grows: whether there is more of it, whether it is
 * another one by now, and its lines by their places.
 */
import { open, stat } from "node:fs/promises";
import type { FileHandle } from "node:fs/promises";
import { LineMarks } from "@rayling/data-proto";
import type { JsonlRecord } from "@rayling/data-proto";
import { isRecord } from "@rayling/reward-loop/reward-log";
import type { RewardRecord } from "@rayling/reward-loop/reward-log";

/** Where a line is; of a packed file the record itself is kept. */
export type Line = Place | RewardRecord;

interface Place {
  readonly start: number;
  readonly end: number;
}

export interface FileLook {
  /** Bytes. */
  readonly size: number;
  /** `anew`: it is another file, or a packed one, and is read from its start. */
  readonly news: "none" | "more" | "anew";
}

export class LogFile {
  readonly path: string;
  readonly isPacked: boolean;
  readonly #marks: LineMarks = new LineMarks();
  /** When it was last read whole, `size`; when it was last looked at, the others. */
  #known = { size: -1, ino: -1, mtimeMs: -1 };
  /** Whether a line is not where it was read. */
  #isOutdated = false;
  #handle: Promise<FileHandle> | undefined;

  constructor(path: string) {
    this.path = path;
    this.isPacked = path.endsWith(".gz");
  }

  async look(): Promise<FileLook> {
    const none = { size: 0, ino: -1, mtimeMs: -1 };
    // The reader reports a file that is not there.
    const { size, ino, mtimeMs } = await stat(this.path).catch(() => none);
    const known = this.#known;
    const isSame = size === known.size && ino === known.ino && mtimeMs === known.mtimeMs;
    if (isSame && ino !== -1 && !this.#isOutdated) return { size, news: "none" };
    this.#known = { size: known.size, ino, mtimeMs };
    const isOther = size < known.size || ino !== known.ino || this.#isOutdated;
    const isAnew = this.isPacked || isOther || !(await this.#marks.areIn(this.path));
    if (!isAnew) return { size, news: "more" };
    this.#isOutdated = false;
    this.#marks.clear();
    await this.close();
    return { size, news: "anew" };
  }

  /** Takes each line as it is read. */
  add(record: JsonlRecord): void {
    this.#marks.add(record);
  }

  /** All of it was read. @param size at the look before */
  end(size: number): void {
    this.#known.size = size;
  }

  /** The next look finds another file: a line is not where it was read. */
  outdate(): void {
    this.#isOutdated = true;
  }

  /** Undefined: there is no record at that place. */
  async recordAt(line: Line): Promise<RewardRecord | undefined> {
    if (!("start" in line)) return line;
    this.#handle ??= open(this.path, "r");
    const bytes = Buffer.allocUnsafe(line.end - line.start);
    const { bytesRead } = await (await this.#handle).read(bytes, 0, bytes.length, line.start);
    const value = jsonOf(bytes.toString("utf8", 0, bytesRead));
    return isRecord(value) ? value : undefined;
  }

  async close(): Promise<void> {
    const handle = this.#handle;
    this.#handle = undefined;
    await (await handle)?.close();
  }
}

/** Undefined: it is none. */
function jsonOf(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch (error) {
    if (error instanceof SyntaxError) return undefined;
    throw error;
  }
}
