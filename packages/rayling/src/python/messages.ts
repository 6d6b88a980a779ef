/**
 * Messages between a reward loop and a Python process, as frames: `[isTagged, message]`. Rows that
 * leave together are one message, or several where its text would be long.
 */

import { encodeFrame, type Frame, FrameError } from "./wire/frames.ts";
import { decode, encode } from "@rayling/core/python";

/** The head of a frame of several rows is not longer. */
const fullBytes: number = 2 ** 26;

/** @returns the parts of one frame, in the order in which they are written */
export function frameOf(message: unknown): Uint8Array[] {
  const { value, isTagged, buffers } = encode(message);
  return encodeFrame([isTagged, value], buffers);
}

/**
 * @param mostBytes of a frame before its buffers, where it has more than one row
 * @returns frames of the rows in their order, each in parts
 */
export function framesOf(
  rows: readonly unknown[],
  mostBytes: number = fullBytes,
): (readonly Uint8Array[])[] {
  const whole = rows.length > 1 ? shortFrame(rows, mostBytes) : frameOf(rows);
  if (whole !== undefined) return [whole];
  const half = rows.length >> 1;
  return [...framesOf(rows.slice(0, half), mostBytes), ...framesOf(rows.slice(half), mostBytes)];
}

function shortFrame(rows: readonly unknown[], mostBytes: number): Uint8Array[] | undefined {
  try {
    const frame = frameOf(rows);
    const [first] = frame;
    return first !== undefined && first.byteLength <= mostBytes ? frame : undefined;
  } catch (error) {
    // The text would be longer than a string of V8.
    if (error instanceof RangeError) return undefined;
    throw error;
  }
}

/** @throws FrameError for a frame that holds no message */
export function messageOf({ head, buffers }: Frame): unknown {
  if (!Array.isArray(head) || head.length !== 2) throw new FrameError("a message was expected");
  const [isTagged, value]: unknown[] = head;
  return isTagged === true ? decode(value, buffers) : value;
}
