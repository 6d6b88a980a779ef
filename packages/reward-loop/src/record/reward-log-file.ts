/**
 * The reward log: one line for each outcome, behind one for each part that it was put together
 * from, appended as it comes and never changed (JSONL). From it a run is audited, scored again in
 * part, and gone on with.
 *
 * Of several lines for one index the last valid one counts, else the last: what was scored again
 * is not counted twice. Where another sample has that place now, only its lines do. A line that
 * was cut off when the process was killed is passed over; its sample is scored again.
 */

import { open } from "node:fs/promises";
import type { Writable } from "node:stream";
import { constants, gunzipSync } from "node:zlib";
import { JsonlError, openJsonlWriter, readJsonl } from "@rayling/data-proto";
import type { JsonlWriter } from "@rayling/data-proto";
import { warn } from "@rayling/core/terminal";
import type { RewardSample } from "@rayling/reward-manager-registry";
import { present } from "@rayling/reward-manager-registry/values";
import { RewardLogError } from "../errors.ts";
import type { SampleOutcome } from "../outcome.ts";
import { carriable } from "./carriable.ts";
import { isRecord, recordsOf, takesPlaceOf, withoutTexts } from "./reward-record.ts";
import type { RecordPlace, RewardRecord } from "./reward-record.ts";
import { textsOf } from "../sample/logged-texts.ts";
import { WriterMark } from "./writer-mark.ts";

/** How a reward log is opened, and what it stores. */
export interface RewardLogOptions {
  /** Keep what the file has, and go on behind it. Default: an empty file. */
  readonly append?: boolean;
  /**
   * The mark of a reader that has read the log and continues it, so that no other writer came
   * between. It is removed when the log is closed. Default: a new one.
   */
  readonly mark?: WriterMark;
  /**
   * Whether lines have the prompt, the response and a short ground truth of their samples.
   * Default true.
   */
  readonly texts?: boolean;
}

/** A reward log that is being written: a line of JSON for each outcome. */
export class RewardLog implements AsyncDisposable {
  readonly #writer: JsonlWriter;
  readonly #mark: WriterMark | undefined;
  readonly #hasTexts: boolean;
  #records = 0;
  #closing: Promise<void> | undefined;
  #hasWarned = false;

  private constructor(writer: JsonlWriter, mark: WriterMark | undefined, hasTexts: boolean) {
    this.#writer = writer;
    this.#mark = mark;
    this.#hasTexts = hasTexts;
  }

  /**
   * Rejects with JsonlError if it cannot be written, and with RewardLogBusyError while another
   * one writes it.
   *
   * @param target a file; or a stream, which stays open when the log is closed
   */
  static async open(target: string | Writable, options: RewardLogOptions = {}): Promise<RewardLog> {
    const { append = false, texts = true } = options;
    const mark =
      options.mark ?? (typeof target === "string" ? await WriterMark.put(target) : undefined);
    try {
      return new RewardLog(await openJsonlWriter(target, { append }), mark, texts);
    } catch (error) {
      await mark?.remove();
      throw error;
    }
  }

  /** The path of the file. */
  get path(): string {
    return this.#writer.path;
  }

  /** Outcomes that this one has written, and the file has. */
  get records(): number {
    return this.#records;
  }

  /**
   * Resolves when the outcome is with the operating system: a process that is killed then has not
   * lost it. Rejects with JsonlError when the file cannot be written any more, or is not what was
   * written (JSONL_CHANGED).
   *
   * @param about further fields of the lines, of the caller's own
   * @returns the line of the outcome as a whole
   */
  async write(
    sample: RewardSample,
    outcome: SampleOutcome,
    place: Omit<RecordPlace, "at">,
    about: Readonly<Record<string, unknown>> = {},
  ): Promise<RewardRecord> {
    const records = recordsOf(sample, outcome, { ...place, at: new Date() });
    const written = await Promise.all(
      records.map((one) => {
        // Once for all parts.
        const texts = this.#hasTexts && !isOfPart(one) ? textsOf(sample) : {};
        return this.#write({ ...about, ...one, ...texts });
      }),
    );
    this.#records += 1;
    return present(written.at(-1), "a written record");
  }

  /**
   * Compares the file with what was written: rejects with JSONL_CHANGED where something of it is
   * gone.
   */
  async close(): Promise<void> {
    this.#closing ??= this.#close();
    await this.#closing;
  }

  async #close(): Promise<void> {
    try {
      try {
        await this.#writer.verify();
      } finally {
        await this.#writer.close();
      }
    } finally {
      await this.#mark?.remove();
    }
  }

  [Symbol.asyncDispose](): Promise<void> {
    return this.close();
  }

  async #write(record: RewardRecord): Promise<RewardRecord> {
    let one = record;
    for (;;) {
      try {
        // Lines that come later are no part of what this one waits for: theirs may fail alone.
        await Promise.all([this.#writer.write(one), this.#writer.flush()]);
        return one;
      } catch (error) {
        const less = error instanceof JsonlError ? this.#lessOf(one, error) : undefined;
        if (less === undefined) throw error;
        one = less;
      }
    }
  }

  /**
   * Returns a shorter record for a line that cannot be written: values that JSON cannot carry
   * become texts; a line that is too long loses its texts, then its extra info. The score stays.
   * Undefined: the error has another reason.
   */
  #lessOf(record: RewardRecord, { code, reason }: JsonlError): RewardRecord | undefined {
    if (code === "JSONL_BAD_VALUE" && record.asText === undefined) {
      const { value, asText } = carriable(record);
      this.#tell(reason);
      return { ...(value as RewardRecord), asText };
    }
    if (code !== "JSONL_LINE_TOO_LONG") return undefined;
    if (record.response !== undefined) return { ...withoutTexts(record), textsDropped: reason };
    if (record.extraDropped !== undefined) return undefined;
    return { ...withoutExtra(record), extraDropped: reason };
  }

  /** Once: a judge says it of every sample. */
  #tell(reason: string): void {
    if (this.#hasWarned) return;
    this.#hasWarned = true;
    warn(
      `the reward log ${this.path} has values as text that JSON cannot carry, the first because ${reason}; \`asText\` in its lines names them`,
    );
  }
}

/** With CANNOT_TELL the error has the extra info, too. */
function withoutExtra({ error, ...record }: RewardRecord): RewardRecord {
  if (error === null) return { ...record, error, extra: {} };
  const { rewardExtraInfo: _, ...rest } = error;
  return { ...record, error: rest, extra: {} };
}

/**
 * Yields all lines of a log, in their order, without an incomplete last one. Rejects with
 * JsonlError, or RewardLogError for a line that is no record, and for a file with other content and
 * no record: a writer that took it for an empty log would append to it.
 *
 * @param mayLack a missing file has no lines
 */
export async function* readRewardLog(
  path: string,
  { mayLack = false }: { readonly mayLack?: boolean } = {},
): AsyncGenerator<RewardRecord, void, undefined> {
  const cutOff: JsonlError[] = [];
  const onMalformed = (error: JsonlError): void => void (cutOff.length < 2 && cutOff.push(error));
  let records = 0;
  try {
    for await (const { line, value } of readJsonl(path, { onMalformed })) {
      if (!isRecord(value)) throw new RewardLogError(path, line);
      records += 1;
      yield value;
    }
    const [first, second] = cutOff;
    if (records > 0 || first === undefined) return;
    // Killed while it wrote its first line: a log without records may have one that was cut off.
    if (second !== undefined || !(await beginsAsRecord(path))) {
      throw new RewardLogError(path, first.line ?? 1);
    }
  } catch (error) {
    if (!(error instanceof JsonlError)) throw error;
    // The first bytes are those of another kind of file.
    if (error.code === "JSONL_MALFORMED") throw new RewardLogError(path, 1, { cause: error });
    if (error.code !== "JSONL_NOT_FOUND" || !mayLack) throw error;
  }
}

async function beginsAsRecord(path: string): Promise<boolean> {
  const bytes = await firstBytes(path, 4096);
  const isGzip = bytes[0] === 0x1f && bytes[1] === 0x8b;
  // Cut off, too.
  const text = isGzip ? gunzipSync(bytes, { finishFlush: constants.Z_SYNC_FLUSH }) : bytes;
  return text[0] === 0x7b;
}

async function firstBytes(path: string, count: number): Promise<Buffer> {
  const file = await open(path, "r");
  try {
    const { buffer, bytesRead } = await file.read(Buffer.alloc(count), 0, count, 0);
    return buffer.subarray(0, bytesRead);
  } finally {
    await file.close();
  }
}

/** Records that count, by index: of outcomes as a whole, without prompts and responses. */
export async function outcomesIn(path: string): Promise<Map<number, RewardRecord>> {
  const records = new Map<number, RewardRecord>();
  for await (const record of readRewardLog(path)) {
    if (isOfPart(record)) continue;
    if (takesPlaceOf(record, records.get(record.index))) {
      records.set(record.index, withoutTexts(record));
    }
  }
  return records;
}

/**
 * Whether the line belongs to one of several rewards, or to a stage of a cascade. Older logs have
 * no such lines.
 */
export function isOfPart({ component }: RewardRecord): boolean {
  return typeof component === "string";
}
