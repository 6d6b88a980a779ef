/**
 * Big values on their way over one session, in both directions: announced, wanted, sent in parts,
 * received into the memory that they will have (value-parts.ts has the rules of one value).
 */
import { type Encoded, sizeOf } from "../../protocol/codec.ts";
import { BatchWriter } from "../../protocol/frames/batch-writer.ts";
import type { Batch, Message, Part } from "../../protocol/message.ts";
import { warnOfCopies } from "../../protocol/values/live-memory.ts";
import { RaySystemError } from "../../shared/errors.ts";
import type { Channel } from "../../transport/channel.ts";
import { peerLimits } from "../../transport/socket/framing.ts";
import type { Requests } from "./requests.ts";
import { IncomingParts, OutgoingParts, wholeBytes } from "./value-parts.ts";

/** The room that a value takes up while its parts arrive. */
export interface Room {
  /** A part has arrived. */
  came(): void;
  /** The value is here, or lost. */
  end(): void;
}

/** `begin` is called when there is room for a value of so many bytes. */
export type AskForRoom = (bytes: number, begin: (room: Room) => void) => void;

type PartsMessage = Extract<Message, { kind: "parts" }>;

/** A value that arrives; undefined until there is room for it. */
type Incoming = { readonly parts: IncomingParts; readonly room: Room } | undefined;

const noBytes: Uint8Array = new Uint8Array(0);
const noBuffers: readonly SharedArrayBuffer[] = [];

export class PartTransfers {
  readonly #channel: Channel;
  readonly #send: (message: Message) => void;
  readonly #requests: Requests;
  readonly #askForRoom: AskForRoom;
  /** By the id of the peer's fetch. */
  readonly #outgoing: Map<number, OutgoingParts> = new Map();
  /** By the id of our fetch. */
  readonly #incoming: Map<number, Incoming> = new Map();
  #isClosed = false;

  constructor(
    channel: Channel,
    send: (message: Message) => void,
    requests: Requests,
    askForRoom: AskForRoom,
  ) {
    this.#channel = channel;
    this.#send = send;
    this.#requests = requests;
    this.#askForRoom = askForRoom;
    channel.takeParts?.((id, size) => this.#awaited(id).parts.place(size));
  }

  /** Announces the answer to a fetch. False when it is small, or is not copied, and goes whole. */
  announce(id: number, value: Encoded): boolean {
    if (this.#channel.takeParts === undefined || sizeOf(value) <= wholeBytes) return false;
    const writer = new BatchWriter();
    writer.write({ kind: "result", id, value });
    if (writer.live !== undefined) warnOfCopies(writer.live);
    const { bytes, buffers } = writer.take();
    const sizes = buffers.map(({ byteLength }) => byteLength);
    if (sumOf(sizes) <= wholeBytes) return false;
    this.#outgoing.set(id, new OutgoingParts(id, buffers));
    this.#send({ kind: "parts", id, bytes, sizes });
    return true;
  }

  /**
   * The peer wants that many parts more. Returns whether all have been sent, or it wants no more.
   *
   * @throws RaySystemError for parts that there are not
   */
  wanted(id: number, count: number): boolean {
    const outgoing = this.#outgoing.get(id);
    if (outgoing === undefined) throw new RaySystemError(`there are no parts of ${id} to want`);
    outgoing.want(count);
    for (const part of outgoing.next()) {
      if (this.#channel.isOpen) this.#channel.send({ bytes: noBytes, buffers: noBuffers, part });
    }
    if (count > 0 && !outgoing.isDone) return false;
    this.#outgoing.delete(id);
    return true;
  }

  /**
   * The peer announces the answer to one of our fetches: its parts are wanted when there is room.
   *
   * @throws RaySystemError for an answer that nobody waits for, or that is too big
   */
  announced({ id, bytes: announced, sizes }: PartsMessage): void {
    if (this.#requests.peek(id) === undefined || this.#incoming.has(id)) {
      throw new RaySystemError(`nobody waits for the parts of ${id}`);
    }
    const total = sumOf(sizes);
    if (total === 0 || total > peerLimits.maxBufferBytes) {
      throw new RaySystemError(`parts of ${total} bytes are over the limit`);
    }
    // A copy, because `announced` is a view of the chunk that it arrived in.
    const bytes = announced.slice();
    this.#incoming.set(id, undefined);
    this.#askForRoom(total, (room) => {
      if (this.#isClosed) return room.end();
      try {
        this.#incoming.set(id, { parts: new IncomingParts(id, bytes, sizes), room });
        this.#wantMore(id);
      } catch (error) {
        this.#incoming.delete(id);
        room.end();
        this.#send({ kind: "want", id, count: 0 });
        this.#requests.take(id)?.refuse?.(total, String(error));
      }
    });
  }

  /** Returns the value's batch when its last part has arrived. @throws RaySystemError */
  arrived({ id, data }: Part): Batch | undefined {
    const { parts, room } = this.#awaited(id);
    parts.arrived(data.length);
    room.came();
    if (!parts.isWhole) {
      this.#wantMore(id);
      return undefined;
    }
    this.#incoming.delete(id);
    room.end();
    return parts.batch;
  }

  close(): void {
    this.#isClosed = true;
    for (const incoming of this.#incoming.values()) incoming?.room.end();
    this.#incoming.clear();
    this.#outgoing.clear();
  }

  /** @throws RaySystemError for parts that are not on their way */
  #awaited(id: number): NonNullable<Incoming> {
    const incoming = this.#incoming.get(id);
    if (incoming === undefined) throw new RaySystemError(`nobody waits for a part of ${id}`);
    return incoming;
  }

  #wantMore(id: number): void {
    const count = this.#incoming.get(id)?.parts.want() ?? 0;
    if (count > 0) this.#send({ kind: "want", id, count });
  }
}

function sumOf(sizes: readonly number[]): number {
  return sizes.reduce((sum, size) => sum + size, 0);
}
