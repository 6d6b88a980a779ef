/** Fields of protobuf messages that several loggers write: texts and messages within messages. */

import { WireType } from "@bufbuild/protobuf/wire";
import type { BinaryWriter } from "@bufbuild/protobuf/wire";

/** Writes the fields of a message. */
export type Fields = (writer: BinaryWriter) => void;

export function text(writer: BinaryWriter, field: number, value: string): void {
  writer.tag(field, WireType.LengthDelimited).string(value);
}

export function message(writer: BinaryWriter, field: number, fields: Fields): void {
  writer.tag(field, WireType.LengthDelimited).fork();
  fields(writer);
  writer.join();
}
