/**
 * Passes the settings to a host process over its inherited control socket, before any other message
 * there. A dialled host, which does not need that socket otherwise, also gets new certificates over
 * it.
 *
 * The settings do not go by environment or arguments: other processes of the user can read those,
 * child processes inherit them, and they hold only 128 KiB. The settings contain a key and tokens.
 */
import { readSync } from "node:fs";
import type { Readable, Writable } from "node:stream";
import type { Credentials } from "../transport/tls/credentials.ts";
import { inherited, type ProcessSettings } from "./host-control.ts";

const lengthBytes = 4;

export function writeSettings(control: Writable, settings: ProcessSettings): void {
  write(control, settings);
}

export function writeCredentials(control: Writable, credentials: Credentials): void {
  write(control, credentials);
}

/** Calls back with each renewed set of credentials. */
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

/** Waits for all of the settings; undefined if the process that started this one is gone. */
export function readSettings(fd: number = inherited.control): ProcessSettings | undefined {
  const length = readExactly(fd, lengthBytes)?.readUInt32LE();
  const text = length === undefined ? undefined : readExactly(fd, length);
  return text === undefined ? undefined : (JSON.parse(text.toString()) as ProcessSettings);
}

/** Reads exactly `length` bytes: others read the data behind them. */
function readExactly(fd: number, length: number): Buffer | undefined {
  const bytes = Buffer.alloc(length);
  for (let at = 0; at < length;) {
    const count = readSync(fd, bytes, at, length - at, null);
    if (count === 0) return undefined;
    at += count;
  }
  return bytes;
}
