/**
 * How a host process is told what it is started with: over the socket of its control, which it inherits, before anything else is said there. A host that is
 * dialled, which needs that socket for nothing else, is told of new certificates there, too.
 *
 * Not by its environment or arguments: whoever is the same user reads those, what it starts inherits them, and they hold 128 KiB. Here is a key, and tokens.
 */
import { readSync } from "node:fs";
import type { Readable, Writable } from "node:stream";
import type { Credentials } from "../transport/tls/credentials.ts";
import { inherited, type ProcessSettings } from "./control.ts";

const lengthBytes = 4;

export function writeSettings(control: Writable, settings: ProcessSettings): void {
  write(control, settings);
}

export function writeCredentials(control: Writable, credentials: Credentials): void {
  write(control, credentials);
}

/** Calls back with each that comes. */
export function readCredentialsFrom(
  control: Readable,
  onCredentials: (credentials: Credentials) => void,
): void {
  let rest: Buffer = Buffer.alloc(0);
  control.on("data", (chunk: Buffer) => {
    rest = Buffer.concat([rest, chunk]);
    while (rest.length >= lengthBytes) {
      const end = lengthBytes + rest.readUInt32LE();
      if (rest.length < end) return;
      const text = rest.subarray(lengthBytes, end).toString();
      rest = rest.subarray(end);
      onCredentials(JSON.parse(text) as Credentials);
    }
  });
}

function write(control: Writable, value: object): void {
  const text = Buffer.from(JSON.stringify(value));
  const length = Buffer.alloc(lengthBytes);
  length.writeUInt32LE(text.length);
  control.write(Buffer.concat([length, text]));
}

/** Waits for all of it; undefined if whoever started this process is gone. */
export function readSettings(fd: number = inherited.control): ProcessSettings | undefined {
  const length = readExactly(fd, lengthBytes)?.readUInt32LE();
  const text = length === undefined ? undefined : readExactly(fd, length);
  return text === undefined ? undefined : (JSON.parse(text.toString()) as ProcessSettings);
}

/** No more than that: what follows is read by others. */
function readExactly(fd: number, length: number): Buffer | undefined {
  const bytes = Buffer.alloc(length);
  for (let at = 0; at < length;) {
    const count = readSync(fd, bytes, at, length - at, null);
    if (count === 0) return undefined;
    at += count;
  }
  return bytes;
}
