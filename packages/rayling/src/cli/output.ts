/**
 * The one place that writes to stdout and stderr. A terminal finds nothing to obey in text of others: names and messages in a line go through `plain`, and all
 * text goes through here.
 */
import { Writable } from "node:stream";
import { takesColours, terminalJson, terminalLine, terminalText } from "@rayling/core/terminal";

/** To stdout, without colours. */
export function say(text: string): void {
  process.stdout.write(terminalText(text));
}

/** To stdout, with the colours that the command gave it. */
export function sayStyled(text: string): void {
  process.stdout.write(terminalText(text, { colours: takesColours(process.stdout) }));
}

/** To stdout, for programs to read: on the way to one it stays as it is. Resolves when it is written. */
export function sayData(text: string): Promise<void> {
  const shown = process.stdout.isTTY ? terminalText(text) : text;
  return new Promise((resolve) => process.stdout.write(shown, () => resolve()));
}

export interface DataOutput {
  /**
   * To stdout, as it is; a terminal gets nothing to obey. Its writes fail where nobody reads any
   * more.
   */
  readonly stream: Writable;
  /** Nothing else is kept from stdout any more. */
  close(): void;
}

/**
 * Stdout for data alone: whatever else writes there meanwhile (this command, a reward function)
 * goes to stderr.
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
      // Mostly it is its class's.
      if (own === undefined) Reflect.deleteProperty(stdout, "write");
      else Object.defineProperty(stdout, "write", own);
    },
  };
}

/** To stderr, without colours. */
export function tell(text: string): void {
  process.stderr.write(terminalText(text));
}

/** The value, in which a terminal finds nothing to obey, whoever reads it. */
export function jsonText(value: unknown, indent?: number): string {
  return terminalJson(JSON.stringify(value, null, indent));
}

/** In one line, with nothing that a terminal would obey. */
export function plain(text: string): string {
  return terminalLine(text);
}
