/**
 * Shows the output of hosts in whole lines, each with its writer:
 * `(Counter actor-1a2b3c host-9z8y7x) line`.
 *
 * The first of several equal lines is shown at once. Equal lines of other hosts within 5 seconds
 * are counted, and shown as one `line [repeated 12x across cluster]`; repeats of one host alone are
 * not counted. Ray does this, too. Lines contain nothing that a terminal obeys, except colours.
 */
import type { OutputStream } from "../../host/output.ts";
import { clockMs } from "../../shared/clock.ts";
import { shortId } from "../../shared/ids.ts";
import { terminalLine, terminalText } from "../../shared/text/terminal-text.ts";
import type { HostOutput } from "../launch/host.ts";
import { timers } from "../../shared/machine/timers.ts";

/** Ray's window. */
const windowMs = 5000;

/** The lines for comparison; the oldest leave first. */
const maxRecent = 1000;

/** An unfinished line of this length is shown. */
const maxLine = 64 * 1024;

interface Recent {
  readonly stream: OutputStream;
  readonly line: string;
  readonly hosts: Set<string>;
  sinceMs: number;
  count: number;
  /** The prefix of the last counted line. */
  prefix: string;
}

export interface LogPrinterParts {
  readonly write: (stream: OutputStream, text: string) => void;
  /** Returns whether the stream shows colours of hosts. Default: it does not. */
  readonly takesColours?: ((stream: OutputStream) => boolean) | undefined;
  /** Called with every line as it is, shown or counted. */
  readonly onLine?: HostOutput["line"] | undefined;
  readonly now?: () => number;
}

export class LogPrinter implements HostOutput {
  readonly #write: (stream: OutputStream, text: string) => void;
  readonly #onLine: HostOutput["line"] | undefined;
  readonly #takesColours: (stream: OutputStream) => boolean;
  readonly #now: () => number;
  /** Unfinished lines by host, then by stream and writer. */
  readonly #open: Map<string, Map<string, { stream: OutputStream; owner: string; text: string }>> =
    new Map();
  /** Recent lines, the oldest first. */
  readonly #recent: Map<string, Recent> = new Map();
  #timer: NodeJS.Timeout | undefined;

  constructor({
    write,
    onLine,
    takesColours = () => false,
    now = () => clockMs(),
  }: LogPrinterParts) {
    this.#write = write;
    this.#onLine = onLine;
    this.#takesColours = takesColours;
    this.#now = now;
  }

  /** Takes a piece of a host's output. */
  text(hostId: string, stream: OutputStream, owner: string, text: string): void {
    let open = this.#open.get(hostId);
    if (open === undefined) this.#open.set(hostId, (open = new Map()));
    const key = `${stream} ${owner}`;
    const lines = ((open.get(key)?.text ?? "") + text).split(/\r?\n/);
    const rest = lines.pop() ?? "";
    for (const line of lines) this.line(hostId, stream, owner, line);
    if (rest === "") open.delete(key);
    else if (rest.length < maxLine) open.set(key, { stream, owner, text: rest });
    else {
      open.delete(key);
      this.line(hostId, stream, owner, rest);
    }
  }

  line(hostId: string, stream: OutputStream, owner: string, line: string): void {
    this.#flushOld();
    this.#onLine?.(hostId, stream, owner, line);
    const prefix = terminalLine(`(${owner === "" ? "" : `${owner} `}${shortId(hostId)}) `);
    const key = `${stream} ${line}`;
    const known = this.#recent.get(key);
    if (known === undefined) {
      this.#note(key, { stream, line, hosts: new Set([hostId]), count: 0, prefix });
    } else {
      known.hosts.add(hostId);
      if (known.hosts.size > 1) {
        known.count += 1;
        known.prefix = prefix;
        return this.#arm();
      }
    }
    this.#write(stream, `${prefix}${this.#shown(stream, line)}\n`);
  }

  /** Shows the unfinished lines of a host that has ended. */
  hostEnded(hostId: string): void {
    for (const { stream, owner, text } of this.#open.get(hostId)?.values() ?? []) {
      this.line(hostId, stream, owner, text);
    }
    this.#open.delete(hostId);
  }

  /** Shows the counted lines. */
  close(): void {
    timers.clearTimeout(this.#timer);
    this.#timer = undefined;
    for (const [key, recent] of this.#recent) this.#flush(key, recent);
    this.#recent.clear();
  }

  #note(key: string, recent: Omit<Recent, "sinceMs">): void {
    this.#recent.set(key, { ...recent, sinceMs: this.#now() });
    if (this.#recent.size <= maxRecent) return;
    const [oldest] = this.#recent;
    if (oldest !== undefined) this.#flush(...oldest);
  }

  #arm(): void {
    if (this.#timer !== undefined) return;
    this.#timer = timers.setTimeout(() => {
      this.#timer = undefined;
      this.#flushOld();
      if ([...this.#recent.values()].some(({ count }) => count > 0)) this.#arm();
    }, windowMs);
    this.#timer.unref();
  }

  #flushOld(): void {
    const until = this.#now() - windowMs;
    for (const [key, recent] of this.#recent) {
      if (recent.sinceMs > until) return;
      this.#flush(key, recent);
      if (recent.count < 2) continue;
      // Hosts that repeat each other will go on with it.
      this.#recent.set(key, { ...recent, sinceMs: this.#now(), count: 0 });
    }
  }

  #flush(key: string, { stream, line, count, prefix }: Recent): void {
    this.#recent.delete(key);
    if (count === 0) return;
    const repeated = count === 1 ? "" : ` [repeated ${count}x across cluster]`;
    this.#write(stream, `${prefix}${this.#shown(stream, line)}${repeated}\n`);
  }

  /** A line may come from a model, or from a program that it wrote. */
  #shown(stream: OutputStream, line: string): string {
    return terminalText(line, { colours: this.#takesColours(stream) });
  }
}
