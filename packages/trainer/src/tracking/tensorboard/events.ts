/**
 * TensorBoard's events (tensorboard/compat/proto: event, summary, tensor) as records of a file.
 * Field numbers are TensorBoard's.
 */

import { BinaryWriter, WireType } from "@bufbuild/protobuf/wire";
import { message, text } from "../protobuf-fields.ts";
import type { Fields } from "../protobuf-fields.ts";
import { maskedCrc32c } from "./crc32c.ts";

/** The first event of a file. */
export function versionEvent(wallMs: number): Buffer {
  return event(wallMs, (writer) => text(writer, 3, "brain.Event:2"));
}

/** From this step on a reader forgets what earlier files of the run said. */
export function restartEvent(wallMs: number, step: number): Buffer {
  const sessionStart = 1;
  return event(wallMs, (writer) => {
    integer(writer, 2, step);
    message(writer, 7, (session) => integer(session, 1, sessionStart));
  });
}

export function scalarsEvent(
  wallMs: number,
  step: number,
  scalars: Readonly<Record<string, number>>,
): Buffer {
  return event(wallMs, (writer) => {
    integer(writer, 2, step);
    message(writer, 5, (summary) => {
      for (const [tag, value] of Object.entries(scalars)) {
        message(summary, 1, (scalar) => {
          text(scalar, 1, tag);
          scalar.tag(2, WireType.Bit32).float(Math.fround(value));
        });
      }
    });
  });
}

/** Markdown, for the tab of texts. */
export function textEvent(wallMs: number, step: number, tag: string, markdown: string): Buffer {
  const typeString = 7;
  return event(wallMs, (writer) => {
    integer(writer, 2, step);
    message(writer, 5, (summary) =>
      message(summary, 1, (value) => {
        text(value, 1, tag);
        // The plugin that shows it, and a tensor of one text.
        message(value, 9, (metadata) => message(metadata, 1, (plugin) => text(plugin, 1, "text")));
        message(value, 8, (tensor) => {
          integer(tensor, 1, typeString);
          message(tensor, 2, (shape) => message(shape, 2, (dimension) => integer(dimension, 1, 1)));
          text(tensor, 8, markdown);
        });
      }),
    );
  });
}

function event(wallMs: number, fields: Fields): Buffer {
  const writer = new BinaryWriter();
  writer.tag(1, WireType.Bit64).double(wallMs / 1000);
  fields(writer);
  return Buffer.from(writer.finish());
}

function integer(writer: BinaryWriter, field: number, value: number): void {
  writer.tag(field, WireType.Varint).int64(value);
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
