/**
 * Reads a file that is one JSON array: bytes in, its items out at the end. The whole file is in
 * memory.
 */
import { constants } from "node:buffer";
import { JsonlError } from "../errors.ts";
import { parseJson } from "./parse-json.ts";
import type { NumberRules } from "./parse-json.ts";
import { reasonOf } from "../shared/file-problem.ts";

export interface ArrayItem {
  readonly value: unknown;
  /** 0-based. */
  readonly row: number;
}

/** Whether a file with this head is an array, after a byte order mark and white space. */
export function beginsArray(head: Buffer): boolean {
  return /^(?:\xef\xbb\xbf)?[ \t\r\n]*\[/.test(head.toString("latin1"));
}

export class ArrayReader {
  readonly #path: string;
  readonly #rules: NumberRules;
  readonly #pieces: Buffer[] = [];
  #bytes = 0;

  constructor(path: string, rules: NumberRules) {
    this.#path = path;
    this.#rules = rules;
  }

  push(chunk: Buffer): readonly ArrayItem[] {
    this.#pieces.push(chunk);
    this.#bytes += chunk.length;
    if (this.#bytes <= constants.MAX_STRING_LENGTH) return [];
    const most = Math.floor(constants.MAX_STRING_LENGTH / 2 ** 20);
    throw this.#malformed(`an array of more than ${most} MiB is not read: write one record a line`);
  }

  *end(): Generator<ArrayItem, void, undefined> {
    const items = this.#parse();
    for (const [row, value] of items.entries()) yield { row, value };
  }

  #parse(): readonly unknown[] {
    try {
      const text = new TextDecoder("utf-8", { fatal: true }).decode(Buffer.concat(this.#pieces));
      const items = parseJson(text, this.#rules);
      if (!Array.isArray(items)) throw new SyntaxError("it is another value");
      return items;
    } catch (cause) {
      const kind = cause instanceof TypeError ? "UTF-8" : "one JSON array";
      const why = reasonOf(cause);
      throw this.#malformed(`it begins with [ and is not ${kind}: ${why}`, cause);
    }
  }

  #malformed(reason: string, cause?: unknown): JsonlError {
    return new JsonlError("JSONL_MALFORMED", { path: this.#path, reason, cause });
  }
}
