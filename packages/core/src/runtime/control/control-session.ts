/**
 * One client of the control socket: the session answers its queries, and ends with its connection.
 *
 * It answers a bounded number of queries at a time. No query changes the session, except `stop` and
 * `killActor`.
 */
import { expose } from "comlink";
import type { DriverCommands, LogPart } from "../../rpc/commands.ts";
import type { StateAnswer, TraceEvent } from "../../rpc/state.ts";
import { checkedQuery } from "../../rpc/state-query.ts";
import { type DeathCause, RaySystemError } from "../../shared/errors.ts";
import type { Channel } from "../../transport/channel.ts";
import { channelEndpoint } from "../../transport/endpoint.ts";
import type { Inspector } from "../observe/inspector.ts";
import type { LogLines } from "../observe/kept-log-lines.ts";
import { timers } from "../../shared/machine/timers.ts";

export interface ControlAnswers {
  readonly inspector: Inspector;
  /** Lines of hosts; undefined when the driver does not collect them. */
  readonly lines: LogLines | undefined;
  /** Whether events for a trace are recorded. */
  readonly hasEvents: boolean;
  /** Kills an actor for good. Resolves with whether there was one of that id. */
  readonly killActor: (actorId: string) => Promise<boolean>;
  /** Ends the session and the process. */
  readonly stop: () => void;
}

/** The most queries that are answered at a time. */
const maxAsked = 16;

/** The most trace events in one message. */
const partEvents = 10_000;

/** The most characters of one text in a row: user errors may have any length. */
const maxText = 16 * 1024;

/**
 * The end of the session waits this long for the next question of a client that reads the rest, in
 * ms. What is kept has a bound, and so has the number of questions.
 */
const lastWordsMs = 1_000;

export class ControlSession {
  readonly #channel: Channel;
  readonly #answers: ControlAnswers;
  #asked = 0;
  #trace: (readonly TraceEvent[])[] = [];
  /** Ends the waits for lines that have not come. */
  readonly #waits: Set<() => void> = new Set();
  /** Whether the client reads lines and has not yet seen their end. */
  #follows = false;
  #asksToStop = false;
  #onQuiet: (() => void) | undefined;
  #lastWords: NodeJS.Timeout | undefined;

  constructor(channel: Channel, answers: ControlAnswers) {
    this.#channel = channel;
    this.#answers = answers;
    void channel.closed.then(() => this.#forget());
    expose(this.#commands(), channelEndpoint(channel));
  }

  /** Ends the session: current answers are finished, and a reader of lines sees the end. */
  async close(cause: DeathCause): Promise<void> {
    // The client that requested the end sees the process go.
    if (this.#asksToStop) return;
    if (!this.#isQuiet && this.#channel.isOpen) {
      const { promise, resolve } = Promise.withResolvers<void>();
      this.#lastWords = timers.setTimeout(resolve, lastWordsMs);
      this.#onQuiet = resolve;
      await promise;
      timers.clearTimeout(this.#lastWords);
    }
    this.#channel.close(cause);
  }

  get #isQuiet(): boolean {
    return this.#asked === 0 && !this.#follows;
  }

  #commands(): DriverCommands {
    const { inspector, hasEvents, killActor, stop } = this.#answers;
    return {
      status: () => inspector.status(),
      list: (what, options) =>
        this.#asking(async () => cut(await inspector.state(checkedQuery(what, "list", options)))),
      summarize: (what, options) => this.#asking(() => inspector.summarize(what, options)),
      memory: (options) => this.#asking(() => inspector.memory(options)),
      stacks: (options) => this.#asking(() => inspector.stacks(options)),
      timeline: () => this.#asking(async () => (hasEvents ? await this.#newTrace() : undefined)),
      timelinePart: (index) => {
        const part = this.#trace[index];
        if (part === undefined) throw new RaySystemError(`there is no part ${index} of the trace`);
        this.#trace[index] = [];
        return part;
      },
      logs: (from, waits) => this.#asking(() => this.#logs(from, waits)),
      killActor: (actorId) => this.#asking(() => killActor(actorId)),
      stop: () => {
        this.#asksToStop = true;
        // The answer leaves first.
        timers.setImmediate(stop);
      },
    };
  }

  async #asking<T>(answer: () => Promise<T>): Promise<T> {
    if (this.#asked >= maxAsked) {
      throw new RaySystemError(`at most ${maxAsked} questions are answered at the same time`);
    }
    this.#asked += 1;
    this.#lastWords?.refresh();
    try {
      return await answer();
    } finally {
      this.#asked -= 1;
      // The answer leaves before this reports that the session is quiet.
      if (this.#onQuiet !== undefined && this.#isQuiet) timers.setImmediate(this.#onQuiet);
    }
  }

  async #newTrace(): Promise<number> {
    const events = await this.#answers.inspector.timeline();
    const parts: (readonly TraceEvent[])[] = [];
    for (let at = 0; at < events.length; at += partEvents) {
      parts.push(events.slice(at, at + partEvents));
    }
    this.#trace = parts;
    return parts.length;
  }

  async #logs(from: number, waits: boolean): Promise<LogPart> {
    const { lines } = this.#answers;
    if (lines === undefined) {
      throw new RaySystemError("the driver does not collect the output of its hosts (logToDriver)");
    }
    if (!Number.isSafeInteger(from) || from < 0)
      throw new RaySystemError("the number of a line must be a whole number");
    let part = lines.from(from);
    this.#follows = waits && !part.isEnd;
    if (!waits || part.isEnd || part.lines.length > 0) return part;
    await new Promise<void>((resolve) => {
      const leave = lines.whenMore(end);
      this.#waits.add(end);
      const waiting = this.#waits;
      function end(): void {
        leave();
        waiting.delete(end);
        resolve();
      }
    });
    part = lines.from(from);
    this.#follows = !part.isEnd;
    return part;
  }

  #forget(): void {
    this.#trace = [];
    this.#follows = false;
    for (const end of this.#waits) end();
    this.#onQuiet?.();
  }
}

/** Shortens texts to the length that a message carries. */
function cut(answer: StateAnswer): StateAnswer {
  const rows = answer.rows as readonly Readonly<Record<string, unknown>>[];
  return { ...answer, rows: rows.map((row) => (hasLong(row) ? shortened(row) : row)) };
}

function hasLong(row: Readonly<Record<string, unknown>>): boolean {
  return Object.values(row).some((value) => typeof value === "string" && value.length > maxText);
}

function shortened(row: Readonly<Record<string, unknown>>): object {
  const shorten = (value: unknown): unknown =>
    typeof value === "string" && value.length > maxText
      ? `${value.slice(0, maxText)}… (${value.length} characters)`
      : value;
  return Object.fromEntries(Object.entries(row).map(([key, value]) => [key, shorten(value)]));
}
