import { describe, expect, test } from "vitest";
import { SharedRing } from "../src/transport/shared-ring.ts";

/** Both ends of one ring. */
function ends(): { readonly writer: SharedRing; readonly reader: SharedRing } {
  const reader = new SharedRing();
  return { reader, writer: new SharedRing(reader.buffer) };
}

const bytesOf = (number: number, size: number): Uint8Array =>
  Uint8Array.from({ length: size }, (_, index) => (number * 31 + index) & 0xff);

describe("a ring", () => {
  test("returns what was written, in order, over its end and over again", () => {
    const { writer, reader } = ends();
    const sizeOf = (number: number): number => (number * 7919) % 1025;
    let read = 0;
    const readNext = (): void => {
      const expected = bytesOf(read, sizeOf(read));
      expect(Buffer.compare(reader.read(read) ?? new Uint8Array(1), expected)).toBe(0);
      read += 1;
    };
    for (let written = 0; written < 5000; written++) {
      while (!writer.write(written, bytesOf(written, sizeOf(written)))) readNext();
    }
    for (let left = 5000 - read; left > 0; left--) readNext();
    expect(reader.read(read)).toBeUndefined();
  });

  test("holds its entries until they are read, and refuses the one without room", () => {
    const { writer, reader } = ends();
    let count = 0;
    while (writer.write(count, bytesOf(count, 1000))) count += 1;
    expect(count).toBe(16);
    for (let number = 0; number < count; number++)
      expect(reader.read(number)).toEqual(bytesOf(number, 1000));
    expect(writer.write(count, bytesOf(count, 1000))).toBe(true);
  });

  test("refuses a long batch and leaves nothing of it", () => {
    const { writer, reader } = ends();
    expect(writer.write(0, new Uint8Array(1025))).toBe(false);
    expect(writer.write(0, new Uint8Array(1024))).toBe(true);
    expect(reader.read(0)).toHaveLength(1024);
    expect(reader.read(1)).toBeUndefined();
  });

  test("keeps an entry whose turn has not come", () => {
    const { writer, reader } = ends();
    writer.write(5, bytesOf(5, 3));
    expect(reader.read(4)).toBeUndefined();
    expect(reader.read(5)).toEqual(bytesOf(5, 3));
  });

  test("returns bytes of its own, which the writer does not change", () => {
    const { writer, reader } = ends();
    writer.write(0, bytesOf(0, 100));
    const first = reader.read(0);
    for (let number = 1; number < 1000; number++) {
      writer.write(number, bytesOf(number, 100));
      reader.read(number);
    }
    expect(first).toEqual(bytesOf(0, 100));
    expect(first?.buffer).toBeInstanceOf(ArrayBuffer);
  });

  test("tells the writer whether the reader looks", () => {
    const { writer, reader } = ends();
    expect(writer.isLooking).toBe(false);
    reader.setLooking(true);
    expect(writer.isLooking).toBe(true);
    reader.setLooking(false);
    expect(writer.isLooking).toBe(false);
  });

  test("has its reader woken once, until it looks", () => {
    const { writer, reader } = ends();
    expect([writer.wakes(), writer.wakes()]).toEqual([true, false]);
    reader.wasWoken();
    expect([writer.wakes(), writer.wakes()]).toEqual([true, false]);
    reader.wasWoken();
    reader.setLooking(true);
    expect(writer.wakes()).toBe(false);
    reader.setLooking(false);
    expect(writer.wakes()).toBe(true);
  });
});
