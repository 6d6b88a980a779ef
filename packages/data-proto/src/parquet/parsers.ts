/**
 * Texts and JSON of Parquet, read as from JSON Lines: bytes that are not UTF-8 are refused, and
 * whole numbers in JSON that a double cannot hold are bigints.
 */
import { jsonValue } from "../jsonl/parse-json.ts";
import { hidden } from "./proto-key.ts";

interface Parsers {
  readonly stringFromBytes: (bytes: Uint8Array | undefined) => string | undefined;
  readonly jsonFromBytes: (bytes: Uint8Array | undefined) => unknown;
}

/** A byte order mark at the start of a text is a part of it. */
const texts = new TextDecoder("utf-8", { fatal: true, ignoreBOM: true });
const documents = new TextDecoder("utf-8", { fatal: true });

/** Parsers for the library. A missing value stays missing. */
export const parsers: Parsers = {
  // Texts may be keys of maps.
  stringFromBytes: (bytes) => bytes && hidden(decoded(texts, bytes)),
  jsonFromBytes: (bytes) => bytes && jsonValue(decoded(documents, bytes)),
};

function decoded(decoder: InstanceType<typeof TextDecoder>, bytes: Uint8Array): string {
  try {
    return decoder.decode(bytes);
  } catch (cause) {
    throw new Error("one of its texts is not UTF-8", { cause });
  }
}
