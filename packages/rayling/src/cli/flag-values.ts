/**
 * Parsers of flag values that several commands have, with their error messages.
 */
import { jsonValue } from "@rayling/data-proto";
import { InvalidArgumentError } from "commander";

/** Parses bytes: `1000000`, `500MiB`, `10GiB`. */
export function byteCount(text: string): number {
  const [, amount = "", unit = ""] = /^(\d+(?:\.\d+)?)(KiB|MiB|GiB|TiB)?$/.exec(text) ?? [];
  const bytes = Number(amount) * (units[unit] ?? 1);
  if (amount !== "" && bytes >= 1 && Number.isSafeInteger(Math.round(bytes))) {
    return Math.round(bytes);
  }
  throw new InvalidArgumentError("It must be a number of bytes, such as 1000000, 500MiB or 10GiB.");
}

const units: Readonly<Record<string, number>> = {
  KiB: 2 ** 10,
  MiB: 2 ** 20,
  GiB: 2 ** 30,
  TiB: 2 ** 40,
};

export function count(least: number): (text: string) => number {
  return (text) => {
    // The limit of setTimeout and of a 32-bit seed.
    const value = wholeNumber(text);
    if (value >= least && value <= longestTimer) return value;
    const most = value > longestTimer ? ` and of at most ${longestTimer}` : "";
    throw new InvalidArgumentError(`It must be a whole number of at least ${least}${most}.`);
  };
}

const longestTimer = 2 ** 31 - 1;

/** Node keeps an idle connection for a second longer than it is told, by one timer. */
const longestSeconds = Math.floor(longestTimer / 1000) - 1;

/** Parses whole seconds, as many as a timer of milliseconds can take. */
export function secondCount(least: number): (text: string) => number {
  return (text) => {
    const value = wholeNumber(text);
    if (value >= least && value <= longestSeconds) return value;
    throw new InvalidArgumentError(
      `It must be a whole number of seconds, from ${least} to ${longestSeconds}.`,
    );
  };
}

function wholeNumber(text: string): number {
  return /^\d+$/.test(text) ? Number(text) : Number.NaN;
}

export function number(text: string): number {
  const value = text.trim() === "" ? Number.NaN : Number(text);
  if (Number.isFinite(value)) return value;
  throw new InvalidArgumentError("It must be a number.");
}

/** Collects the values of a flag that may be repeated. */
export function each(text: string, before: readonly string[] | undefined): readonly string[] {
  return [...(before ?? []), text];
}

/** Parses the path of a file, where no standard stream is read or written in its place. */
export function filePath(text: string): string {
  if (text === "") throw new InvalidArgumentError("It is empty: give a path.");
  if (text !== "-") return text;
  throw new InvalidArgumentError(
    "It must be a file, not standard input or output; ./- is the file of that name.",
  );
}

/** Collects the paths of files. */
export function filePaths(text: string, before: readonly string[] | undefined): readonly string[] {
  return each(filePath(text), before);
}

/**
 * Collects `key=value` flags in one object; a value is parsed as JSON, as data files and requests
 * are, else it is a text.
 */
export function settings(
  text: string,
  before: Readonly<Record<string, unknown>>,
): Readonly<Record<string, unknown>> {
  const [, key, value = ""] = /^([^=\s]+)=(.*)$/s.exec(text) ?? [];
  if (key === undefined) throw new InvalidArgumentError("It must be KEY=VALUE.");
  return { ...before, [key]: jsonOr(value) };
}

function jsonOr(text: string): unknown {
  try {
    return jsonValue(text);
  } catch {
    return text;
  }
}

/** Parses `host:port`; the brackets of an IPv6 host are removed. */
export function hostAndPort(text: string): readonly [string, number] {
  // An IPv6 host without brackets could end in any of its numbers.
  const [, host = "", port = ""] = /^(\[[^[\]]+\]|[^:[\]]+):(\d+)$/.exec(text) ?? [];
  if (host === "" || Number(port) > 65_535) throw new InvalidArgumentError("It must be host:port.");
  return [host.replace(/^\[(.*)\]$/, "$1"), Number(port)];
}

/** Parses a name as the Host header of a request has it, without its port. */
export function hostName(text: string): string {
  const inBrackets = text.startsWith("[") ? text : `[${text}]`;
  if (/^\[[\da-f:.]+\]$/i.test(inBrackets) && URL.canParse(`http://${inBrackets}`)) {
    return inBrackets;
  }
  const name = text.replace(/\.$/, "");
  if (/^[\w-]+(?:\.[\w-]+)*$/.test(name)) return name;
  throw new InvalidArgumentError(
    "It must be a name or an address, such as judge.local, without a scheme and a port: every port is allowed.",
  );
}
