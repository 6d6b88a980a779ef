/**
 * A reward log as the page looks at it: a row for each sample that counts, its texts for the
 * search, and the place of its lines in the file. A log that grows is read on from where it ended.
 * A page need not wait for all of a big log: its first rows are there while the others are read.
 */
import { HttpRefusal } from "@rayling/core/http";
import { readJsonl } from "@rayling/data-proto";
import { isOfPart, isRecord, RewardLogError, takesPlaceOf } from "@rayling/reward-loop/reward-log";
import type { RewardRecord } from "@rayling/reward-loop/reward-log";
import { LogFile } from "./log-file.ts";
import type { Line } from "./log-file.ts";
import { shownResponse } from "./shown-response.ts";
import { TextSearch } from "./text-search.ts";

/** The score of one of several rewards, or of a stage of a cascade. */
export interface PartScore {
  readonly name: string;
  readonly score: number | null;
  readonly line: Line;
}

export interface SampleRow extends Pick<
  RewardRecord,
  | "index"
  | "sample"
  | "valid"
  | "score"
  | "lane"
  | "version"
  | "group"
  | "attempts"
  | "waitedMs"
  | "latencyMs"
  | "cost"
  | "cached"
  | "errorClass"
  | "answeredBy"
> {
  readonly code: string | null;
  readonly tokens: number | null;
  readonly parts: readonly PartScore[];
  readonly line: Line;
  /** The beginning of the response; undefined where the line is short, and is read for it. */
  readonly longResponse: string | null | undefined;
}

/** A sample with all that the log has of it. */
export interface WholeSample {
  readonly record: RewardRecord;
  readonly parts: readonly RewardRecord[];
}

/** When a look at a log that is being read has waited enough. */
export interface FirstLook {
  readonly ms: number;
  /** Rows that there must be. */
  readonly rows: number;
}

/** A list does not read longer lines: hundreds of them may be more than the memory. */
const longLineBytes = 64 * 1024;

const usualFirstLook: FirstLook = { ms: 300, rows: 1000 };

export class LogIndex {
  readonly path: string;
  readonly #file: LogFile;
  readonly #firstLook: FirstLook;
  readonly rows: SampleRow[] = [];
  readonly texts: TextSearch = new TextSearch();
  /** Changes with every row. */
  version = 0;
  /** Lines that are no JSON, such as one that was cut off. */
  malformed = 0;
  readonly #byIndex: Map<number, number> = new Map();
  /** The first place of each sample. */
  readonly #bySample: Map<string, number> = new Map();
  /** Whether a sample in it may have lost its place to another one. */
  #hasLostPlaces = false;
  readonly #waiting: Map<number, { readonly sample: string; readonly part: PartScore }[]> =
    new Map();
  /** The last line that was read. */
  #line = 0;
  /** Where it ends, and how many malformed lines precede it: those behind it are read again. */
  #upTo = { end: 0, malformed: 0 };
  #reading: { readonly whole: Promise<void>; readonly enough: Promise<void> } | undefined;
  /** Bytes that are to be read now. */
  #goal = 0;
  readonly #closing = new AbortController();

  constructor(path: string, firstLook: FirstLook = usualFirstLook) {
    this.path = path;
    this.#file = new LogFile(path);
    this.#firstLook = firstLook;
  }

  /**
   * Reads what has come since the last time. Rejects with JsonlError, and with RewardLogError for
   * another file.
   */
  refresh(): Promise<void> {
    return this.#read().whole;
  }

  /** Reads on as `refresh`, and resolves when there is enough to look at. */
  async look(): Promise<void> {
    const { whole, enough } = this.#read();
    await Promise.race([whole, enough]);
  }

  /** How much of the log is here, of 1; undefined: a packed log is being read. */
  get share(): number | undefined {
    if (this.#reading === undefined || this.#goal === 0) return 1;
    return this.#file.isPacked ? undefined : Math.min(1, this.#upTo.end / this.#goal);
  }

  /** Returns the row of that index in the input; undefined where there is none. */
  rowOf(index: number): SampleRow | undefined {
    return this.rows[this.#byIndex.get(index) ?? -1];
  }

  /** Returns the outcome of a sample of another log: at its index, or where it stands here. */
  sameAs({ index, sample }: SampleRow): SampleRow | undefined {
    const here = this.rowOf(index);
    return here?.sample === sample ? here : this.rows[this.#placeOf(sample) ?? -1];
  }

  /**
   * Rejects with HttpRefusal `log_changed` where its lines are others by now: the next look reads
   * the log anew.
   */
  async whole(row: SampleRow): Promise<WholeSample> {
    const lines = [row.line, ...row.parts.map(({ line }) => line)];
    const found = await Promise.all(lines.map((line) => this.#file.recordAt(line)));
    const [record, ...parts] = found.flatMap((one) =>
      one?.index === row.index && one.sample === row.sample ? one : [],
    );
    if (record !== undefined && parts.length === row.parts.length) return { record, parts };
    this.#file.outdate();
    throw new HttpRefusal(503, "log_changed", `${this.path} is being written anew: ask again`);
  }

  async close(): Promise<void> {
    this.#closing.abort();
    await this.#reading?.whole.catch(() => undefined);
    await this.#file.close();
  }

  #read(): { readonly whole: Promise<void>; readonly enough: Promise<void> } {
    if (this.#reading !== undefined) return this.#reading;
    const { promise: enough, resolve } = Promise.withResolvers<void>();
    const whole = this.#readOn(resolve).finally(() => {
      this.#reading = undefined;
    });
    return (this.#reading = { whole, enough });
  }

  async #readOn(isEnough: () => void): Promise<void> {
    const { isPacked } = this.#file;
    const { size, news } = await this.#file.look();
    if (news === "none") return;
    if (news === "anew") this.#forget();
    this.#goal = size;
    const { signal } = this.#closing;
    const enoughAt = performance.now() + this.#firstLook.ms;
    const from = this.#upTo.end;
    // Reading begins at the end of the last line that was read, which counts as the first one.
    const linesBefore = Math.max(0, this.#line - 1);
    const onMalformed = ({ unterminated }: { readonly unterminated: boolean }): void => {
      // The last line may be on its way.
      if (!unterminated) this.malformed += 1;
    };
    this.malformed = this.#upTo.malformed;
    const options = { places: true, from, onMalformed, signal };
    for await (const one of readJsonl(this.path, options)) {
      const { line, value, place = { start: 0, end: 0 } } = one;
      if (!isRecord(value)) throw new RewardLogError(this.path, linesBefore + line);
      this.#line = linesBefore + line;
      this.#add(value, isPacked ? value : place);
      this.#file.add(one);
      this.#upTo = { end: place.end, malformed: this.malformed };
      if (this.rows.length >= this.#firstLook.rows && performance.now() >= enoughAt) isEnough();
    }
    if (this.rows.length === 0 && this.malformed > 0) throw new RewardLogError(this.path, 1);
    this.#file.end(size);
  }

  #forget(): void {
    this.rows.length = 0;
    this.texts.clear();
    this.#byIndex.clear();
    this.#bySample.clear();
    this.#waiting.clear();
    this.#hasLostPlaces = false;
    this.malformed = 0;
    this.#line = 0;
    this.#upTo = { end: 0, malformed: 0 };
    this.version += 1;
  }

  #add(record: RewardRecord, line: Line): void {
    const { index, sample } = record;
    if (isOfPart(record)) {
      const waiting = this.#waiting.get(index) ?? [];
      const part = { name: record.component ?? "", score: record.score, line };
      this.#waiting.set(index, [...waiting, { sample, part }]);
      return;
    }
    const waiting = this.#waiting.get(index) ?? [];
    this.#waiting.delete(index);
    const known = this.#byIndex.get(index);
    const before = known === undefined ? undefined : this.rows[known];
    if (!takesPlaceOf(record, before)) return;
    const own = waiting.filter((one) => one.sample === sample);
    // A part stands twice where a process was killed before it wrote the whole.
    const parts = [...new Map(own.map(({ part }) => [part.name, part])).values()];
    const at = known ?? this.rows.length;
    this.rows[at] = rowOf(record, parts, line);
    this.version += 1;
    this.#byIndex.set(index, at);
    if (!this.#bySample.has(sample)) this.#bySample.set(sample, at);
    if (before !== undefined && before.sample !== sample) this.#hasLostPlaces = true;
    this.texts.set(at, textsOf(record));
  }

  #placeOf(sample: string): number | undefined {
    if (this.#hasLostPlaces) {
      this.#bySample.clear();
      for (const [at, row] of this.rows.entries()) {
        if (!this.#bySample.has(row.sample)) this.#bySample.set(row.sample, at);
      }
      this.#hasLostPlaces = false;
    }
    return this.#bySample.get(sample);
  }
}

function rowOf(record: RewardRecord, parts: readonly PartScore[], line: Line): SampleRow {
  const { index, sample, valid, score, lane, version, group, attempts } = record;
  const { waitedMs, latencyMs, cost, cached, errorClass, answeredBy } = record;
  return {
    index,
    sample,
    valid,
    score,
    lane,
    version,
    group,
    attempts,
    waitedMs,
    latencyMs,
    cost,
    cached,
    errorClass,
    answeredBy,
    code: record.error?.code ?? null,
    tokens: record.usage?.totalTokens ?? null,
    parts,
    line,
    longResponse: isLong(line) ? shownResponse(record.response) : undefined,
  };
}

function isLong(line: Line): boolean {
  return "start" in line && line.end - line.start > longLineBytes;
}

/**
 * Texts that are searched: what was asked, answered and right, and what the judge says. Another
 * program may have written anything there.
 */
function textsOf({ prompt, response, groundTruth, extra, error }: RewardRecord): string[] {
  const asked: readonly unknown[] = Array.isArray(prompt) ? prompt.map(contentOf) : [prompt];
  const right = typeof groundTruth === "string" ? groundTruth : JSON.stringify(groundTruth ?? "");
  return [...asked, response, right, ...Object.values(extra), error?.message].filter(
    (text) => typeof text === "string",
  );
}

function contentOf(message: unknown): unknown {
  return typeof message === "object" && message !== null && "content" in message
    ? message.content
    : undefined;
}
