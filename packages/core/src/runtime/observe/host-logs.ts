/**
 * Output of hosts, as the session's `logToDriver` says: shown line by line and kept, shown
 * unchanged, or dropped.
 */
import type { InsideSettings } from "../../host/host-control.ts";
import { takesColours, terminalLine } from "../../shared/text/terminal-text.ts";
import type { HostOutput } from "../launch/host.ts";
import { LogLines } from "./kept-log-lines.ts";
import { LogPrinter } from "./log-printer.ts";

export class HostLogs {
  /** The last lines, for `rayling logs`; undefined when they are not collected. */
  readonly lines: LogLines | undefined;
  readonly output: HostOutput;
  readonly #printer: LogPrinter;
  /** A driver that ends without shutdown also shows its counted lines. */
  readonly #onExit = (): void => this.#printer.close();

  constructor(logToDriver: InsideSettings["logToDriver"]) {
    this.lines = logToDriver === true ? new LogLines() : undefined;
    this.#printer = new LogPrinter({
      write: (stream, text) => void process[stream].write(text),
      takesColours: (stream) => takesColours(process[stream]),
      onLine: this.lines?.add.bind(this.lines),
    });
    this.output = outputFor(logToDriver, this.#printer);
    process.once("exit", this.#onExit);
  }

  hostEnded(hostId: string): void {
    this.#printer.hostEnded(hostId);
  }

  /** Writes a line about the session itself, for the person who started it. */
  tell(line: string): void {
    process.stderr.write(`${terminalLine(line)}\n`);
  }

  close(): void {
    process.off("exit", this.#onExit);
    this.#printer.close();
  }
}

function outputFor(logToDriver: boolean | "raw", printer: LogPrinter): HostOutput {
  if (logToDriver === true) return printer;
  // Threads then write to this process by themselves, or not at all.
  const isRaw = logToDriver === "raw";
  return {
    text: () => undefined,
    line: (_hostId, stream, _owner, line) => void (isRaw && process[stream].write(`${line}\n`)),
  };
}
