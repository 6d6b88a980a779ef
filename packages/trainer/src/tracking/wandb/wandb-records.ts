/**
 * Records of wandb's transaction log, by the field numbers of wandb_internal.proto. Values are JSON
 * as Python writes it, which has NaN and Infinity.
 */

import { BinaryWriter, WireType } from "@bufbuild/protobuf/wire";
import { message, text } from "../protobuf-fields.ts";
import type { Fields } from "../protobuf-fields.ts";

/** Values by their keys, each one as JSON. */
export type JsonItems = ReadonlyMap<string, string>;

export interface WandbRun {
  readonly id: string;
  readonly entity: string | undefined;
  readonly project: string;
  readonly name: string;
  readonly host: string;
  readonly startMs: number;
  readonly config: JsonItems;
}

/** Fields of Record: which one is set says what the record is. */
const kinds = { history: 2, summary: 3, files: 6, run: 17, exit: 18, header: 21 } as const;

/** Oldest reader of the log's form, as wandb's own client writes it. */
const minConsumer = "0.70.0";

export function headerRecord(number: number, producer: string): Uint8Array {
  return record(number, "header", (header) =>
    message(header, 1, (version) => {
      text(version, 1, producer);
      text(version, 2, minConsumer);
    }),
  );
}

export function runRecord(number: number, run: WandbRun): Uint8Array {
  return record(number, "run", (writer) => {
    text(writer, 1, run.id);
    if (run.entity !== undefined) text(writer, 2, run.entity);
    text(writer, 3, run.project);
    message(writer, 4, (config) => items(config, 1, run.config));
    text(writer, 8, run.name);
    text(writer, 13, run.host);
    message(writer, 17, (time) => {
      time.tag(1, WireType.Varint).int64(Math.floor(run.startMs / 1000));
      time.tag(2, WireType.Varint).int32(Math.floor(run.startMs % 1000) * 1_000_000);
    });
  });
}

/** One row of the run's table of metrics. */
export function historyRecord(number: number, step: number, row: JsonItems): Uint8Array {
  return record(number, "history", (history) => {
    items(history, 1, row);
    message(history, 2, (at) => at.tag(1, WireType.Varint).int64(step));
  });
}

/** The last values of keys. */
export function summaryRecord(number: number, row: JsonItems): Uint8Array {
  return record(number, "summary", (summary) => items(summary, 1, row));
}

/** @param path below the folder `files` of the run */
export function fileRecord(number: number, path: string): Uint8Array {
  return record(number, "files", (files) => message(files, 1, (file) => text(file, 1, path)));
}

export function exitRecord(number: number, exitCode: number, runtimeSeconds: number): Uint8Array {
  return record(number, "exit", (exit) => {
    exit.tag(1, WireType.Varint).int32(exitCode);
    exit.tag(2, WireType.Varint).int32(runtimeSeconds);
  });
}

/** A number as Python's JSON has it. */
export function numberJson(value: number): string {
  return Number.isFinite(value) ? JSON.stringify(value) : String(value);
}

function record(number: number, kind: keyof typeof kinds, fields: Fields): Uint8Array {
  const writer = new BinaryWriter();
  writer.tag(1, WireType.Varint).int64(number);
  message(writer, kinds[kind], fields);
  return writer.finish();
}

function items(writer: BinaryWriter, field: number, values: JsonItems): void {
  for (const [key, json] of values) {
    message(writer, field, (item) => {
      text(item, 1, key);
      text(item, 16, json);
    });
  }
}
