/**
 * TensorBoard's events (tensorboard/compat/proto: event, summary, tensor) as records of a file.
 * Field numbers are TensorBoard's.
 */

import { maskedCrc32c } from "./crc32c.ts";
import { float32, float64, message, text, varint } from "./protobuf.ts";
import type { Field } from "./protobuf.ts";

/** The first event of a file. */
export function versionEvent(wallMs: number): Buffer {
  return event(wallMs, [text(3, "brain.Event:2")]);
}

/** From this step on a reader forgets what earlier files of the run said. */
export function restartEvent(wallMs: number, step: number): Buffer {
  const sessionStart = varint(1, 1);
  return event(wallMs, [varint(2, step), message(7, [sessionStart])]);
}

export function scalarsEvent(
  wallMs: number,
  step: number,
  scalars: Readonly<Record<string, number>>,
): Buffer {
  const values = Object.entries(scalars).map(([tag, value]) =>
    message(1, [text(1, tag), float32(2, value)]),
  );
  return event(wallMs, [varint(2, step), message(5, values)]);
}

/** Markdown, for the tab of texts. */
export function textEvent(wallMs: number, step: number, tag: string, markdown: string): Buffer {
  const metadata = message(9, [message(1, [text(1, "text")])]);
  const [strings, oneRow] = [varint(1, 7), message(2, [message(2, [varint(1, 1)])])];
  const tensor = message(8, [strings, oneRow, text(8, markdown)]);
  return event(wallMs, [
    varint(2, step),
    message(5, [message(1, [text(1, tag), metadata, tensor])]),
  ]);
}

function event(wallMs: number, fields: readonly Field[]): Buffer {
  return Buffer.concat([float64(1, wallMs / 1000), ...fields]);
}

/** TFRecord: length, its checksum, the bytes, their checksum. */
export function recordOf(bytes: Buffer): Buffer {
  const head = Buffer.alloc(12);
  head.writeBigUInt64LE(BigInt(bytes.length));
  head.writeUInt32LE(maskedCrc32c(head.subarray(0, 8)), 8);
  const tail = Buffer.alloc(4);
  tail.writeUInt32LE(maskedCrc32c(bytes));
  return Buffer.concat([head, bytes, tail]);
}
