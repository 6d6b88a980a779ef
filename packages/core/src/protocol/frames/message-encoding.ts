/**
 * The layout of each message: its number, the fields behind its head, and their reader. The head is
 * the number and four bytes, which hold the id of a call unless the table says otherwise. Calls are
 * not in the table: they need the routes that BatchWriter and BatchReader know.
 */
import type { Message } from "../message.ts";
import type { Cursor } from "./cursor.ts";
import type { FrameBuffer } from "./frame-buffer.ts";
import { maxIdBytes } from "./layout.ts";

type Kind = Exclude<Message["kind"], "call">;
type MessageOf<One extends Kind> = Extract<Message, { readonly kind: One }>;

interface Frame<One extends Kind> {
  readonly code: number;
  /** Returns the four bytes of the head; default: the id. */
  readonly head?: (message: MessageOf<One>) => number;
  /** Returns the bytes that go beside the batch. */
  readonly write?: (to: FrameBuffer, message: MessageOf<One>) => number | void;
  readonly read: (head: number, from: Cursor) => MessageOf<One>;
}

/** A route frame names the route of later calls; a call frame calls. */
export const codes = { route: 1, call: 2 } as const;

const nothing = (): number => 0;

export const frames: { readonly [One in Kind]: Frame<One> } = {
  result: {
    code: 3,
    write: (to, { value }) => to.body(value),
    read: (id, from) => ({ kind: "result", id, value: from.body() }),
  },
  failure: {
    code: 4,
    write: (to, { error }) => to.body(error),
    read: (id, from) => ({ kind: "failure", id, error: from.body() }),
  },
  fetch: {
    code: 5,
    write: (to, { whole, objectId }) => {
      to.uint32(whole ? 1 : 0);
      to.text(objectId);
    },
    read: (id, from) => ({
      kind: "fetch",
      id,
      whole: from.uint32() === 1,
      objectId: from.text(maxIdBytes),
    }),
  },
  reference: {
    code: 6,
    head: nothing,
    write: (to, { change, objectId, holder }) => {
      to.int32(change);
      to.text(objectId);
      to.text(holder);
    },
    read: (_head, from) => ({
      kind: "reference",
      change: from.int32(),
      objectId: from.text(maxIdBytes),
      holder: from.text(maxIdBytes),
    }),
  },
  results: {
    code: 7,
    write: (to, { values }) => {
      to.uint32(values.length);
      let outside = 0;
      for (const value of values) outside += to.body(value);
      return outside;
    },
    read: (id, from) => ({ kind: "results", id, values: from.bodies(from.uint32()) }),
  },
  gone: { code: 8, read: (id) => ({ kind: "gone", id }) },
  cancelled: { code: 9, read: (id) => ({ kind: "cancelled", id }) },
  item: {
    code: 10,
    write: (to, { index, value }) => {
      to.uint32(index);
      return to.body(value);
    },
    read: (id, from) => ({ kind: "item", id, index: from.uint32(), value: from.body() }),
  },
  consumed: {
    code: 11,
    write: (to, { count }) => to.uint32(count),
    read: (id, from) => ({ kind: "consumed", id, count: from.uint32() }),
  },
  cancel: {
    code: 12,
    write: (to, { recursive }) => to.uint32(recursive ? 1 : 0),
    read: (id, from) => ({ kind: "cancel", id, recursive: from.uint32() === 1 }),
  },
  "cancel-object": {
    code: 13,
    head: ({ recursive, force }) => (recursive ? 1 : 0) + (force ? 2 : 0),
    write: (to, { objectId }) => to.text(objectId),
    read: (head, from) => ({
      kind: "cancel-object",
      objectId: from.text(maxIdBytes),
      recursive: (head & 1) === 1,
      force: (head & 2) === 2,
    }),
  },
  absent: { code: 14, read: (id) => ({ kind: "absent", id }) },
  value: {
    code: 15,
    head: nothing,
    write: (to, { objectId, value }) => {
      to.text(objectId);
      return to.body(value);
    },
    read: (_head, from) => ({
      kind: "value",
      objectId: from.text(maxIdBytes),
      value: from.body(),
    }),
  },
  leaving: { code: 16, head: nothing, read: () => ({ kind: "leaving" }) },
  parts: {
    code: 17,
    write: (to, { bytes, sizes }) => {
      to.bytes(bytes);
      to.sizes(sizes);
    },
    read: (id, from) => ({ kind: "parts", id, bytes: from.bytes(), sizes: from.sizes() }),
  },
  want: {
    code: 18,
    write: (to, { count }) => to.uint32(count),
    read: (id, from) => ({ kind: "want", id, count: from.uint32() }),
  },
  abort: {
    code: 19,
    write: (to, { index, reason }) => {
      to.uint32(index);
      return to.body(reason);
    },
    read: (id, from) => ({ kind: "abort", id, index: from.uint32(), reason: from.body() }),
  },
};

/** Writes any message but a call. Returns the bytes that go beside the batch. */
export function writeFrame(to: FrameBuffer, message: Extract<Message, { kind: Kind }>): number {
  const frame = frames[message.kind] as Frame<Kind>;
  to.head(frame.code, frame.head === undefined ? idOf(message) : frame.head(message));
  return frame.write?.(to, message) ?? 0;
}

function idOf(message: Message): number {
  return "id" in message ? message.id : 0;
}

/** The reader of each frame, by its number. */
export const readers: readonly (Frame<Kind>["read"] | undefined)[] = readersOf();

function readersOf(): (Frame<Kind>["read"] | undefined)[] {
  const all: (Frame<Kind>["read"] | undefined)[] = [];
  for (const { code, read } of Object.values(frames)) all[code] = read;
  return all;
}
