/**
 * The one place that writes to stdout and stderr. Output contains nothing from others that a
 * terminal obeys: names and messages in a line go through `plain`, and all text goes through this
 * module.
 */
import { Writable } from "node:stream";
import { takesColours, terminalJson, terminalLine, terminalText } from "@rayling/core/terminal";

/** Writes to stdout, without colours. */
export function say(text: string): void {
  process.stdout.write(terminalText(text));
}

/** Writes to stdout, with the command's colours. */
export function sayStyled(text: string): void {
  process.stdout.write(terminalText(text, { colours: takesColours(process.stdout) }));
}

/**
 * Writes data to stdout for programs: unchanged, unless stdout is a terminal. Resolves when it is
 * written.
 */
export function sayData(text: string): Promise<void> {
  const shown = process.stdout.isTTY ? terminalText(text) : text;
  return new Promise((resolve) => process.stdout.write(shown, () => resolve()));
}

export interface DataOutput {
  /**
   * Writes data to stdout unchanged, or safely to a terminal. Writes fail when nobody reads any
   * more.
   */
  readonly stream: Writable;
  /** Gives stdout back to other writers. */
  close(): void;
}

/**
 * Reserves stdout for data: other output (of this command, of a reward function) goes to stderr
 * meanwhile.
 */
export function dataOutput(): DataOutput {
  const { stdout, stderr } = process;
  const own = Object.getOwnPropertyDescriptor(stdout, "write");
  const write = stdout.write.bind(stdout);
  stdout.write = stderr.write.bind(stderr);
  const stream = new Writable({
    write(chunk: Buffer, _encoding, done) {
      write(stdout.isTTY ? terminalText(chunk.toString()) : chunk, done);
    },
  });
  // Each write reports its own failure.
  stream.on("error", () => undefined);
  return {
    stream: Object.assign(stream, { fd: 1 }),
    close: () => {
      // The method usually belongs to the class.
      if (own === undefined) Reflect.deleteProperty(stdout, "write");
      else Object.defineProperty(stdout, "write", own);
    },
  };
}

/** Writes to stderr, without colours; in place of a line that is drawn again. */
export function tell(text: string): void {
  if (process.stderr.isTTY) process.stderr.write("\r\u001b[2K");
  process.stderr.write(terminalText(text));
}

/** Returns JSON that contains nothing that a terminal obeys. */
export function jsonText(value: unknown, indent?: number): string {
  return terminalJson(JSON.stringify(value, null, indent));
}

/** Returns one line without anything that a terminal obeys. */
export function plain(text: string): string {
  return terminalLine(text);
}
