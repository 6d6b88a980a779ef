/**
 * Serves one export of a module to the Python program that started this process, over the socket
 * that is file descriptor 3.
 *
 * Python writes `[kind, id, ...]`: open, calls, cancellations, credit of streams, close. The first
 * frame opens the export, and its answer has the id 0. The answers of one turn leave in one write.
 * When the socket ends, the process ends.
 */
import { writeSync } from "node:fs";
import { Socket } from "node:net";
import { isThenable } from "@rayling/reward-manager-registry/values";
import { encodeFrame, type Frame, FrameReader } from "../wire/frames.ts";
import { decode, encode } from "@rayling/core/python";
import { openExport, type ServedExport } from "./served-export.ts";
import { generatedBy, Stream } from "./streams.ts";
import { describeThrown } from "./thrown.ts";

const socketDescriptor = 3;

/** As in `python/src/rayling/actors/protocol.py`. */
const asked = { call: 0, taggedCall: 1, cancel: 2, credit: 3, close: 4, open: 5, taggedOpen: 6 };
const answered = { value: 0, tagged: 1, error: 2, stream: 3, item: 4, taggedItem: 5, end: 6 };

/** Serves for as long as the socket is open. */
class ActorHost {
  readonly #socket: Socket;
  #served: ServedExport | undefined;
  readonly #signals = new Map<number, AbortController>();
  readonly #streams = new Map<number, Stream>();
  /** Answers of this turn. */
  #out: Uint8Array[] = [];
  #isDue = false;

  constructor(socket: Socket) {
    this.#socket = socket;
  }

  serve(): void {
    const socket = this.#socket;
    const reader = new FrameReader((frame) => this.#take(frame));
    socket.on("data", (chunk) => {
      reader.push(chunk);
      // Answers of methods that returned at once.
      if (this.#out.length > 0) this.#write();
    });
    socket.on("close", () => process.exit(0));
    socket.on("error", () => process.exit(1));
    // Code of the user may end the process in the turn in which others were answered.
    process.on("exit", () => this.#writeLast());
  }

  #take({ head, buffers }: Frame): void {
    if (!Array.isArray(head)) throw new TypeError("the Python side sent a frame without a list");
    const [kind, id, ...rest]: unknown[] = head;
    if (typeof id !== "number") throw new TypeError("the Python side sent a frame without an id");
    const isTagged = kind === asked.taggedCall || kind === asked.taggedOpen;
    const args = (value: unknown): readonly unknown[] => this.#args(id, value, isTagged, buffers);
    switch (kind) {
      case asked.call:
      case asked.taggedCall:
        return this.#run(id, () => this.#export().call(String(rest[0]), args(rest[1])));
      case asked.open:
      case asked.taggedOpen:
        return this.#run(id, () => this.#open(String(rest[0]), String(rest[1]), args(rest[2])));
      case asked.cancel:
        return this.#cancel(id);
      case asked.credit:
        void this.#streams.get(id)?.allow(Number(rest[0]));
        return;
      case asked.close:
        void this.#close();
        return;
      default:
        throw new TypeError(`the Python side sent a frame of the kind ${String(kind)}`);
    }
  }

  #args(
    id: number,
    value: unknown,
    isTagged: boolean,
    buffers: readonly ArrayBuffer[],
  ): readonly unknown[] {
    const args = isTagged ? decode(value, buffers, () => this.#signal(id)) : value;
    if (!Array.isArray(args)) throw new TypeError("the Python side sent no list of arguments");
    return args;
  }

  #signal(id: number): AbortSignal {
    const known = this.#signals.get(id) ?? new AbortController();
    this.#signals.set(id, known);
    return known.signal;
  }

  #export(): ServedExport {
    if (this.#served === undefined) throw new TypeError("nothing is open yet");
    return this.#served;
  }

  async #open(path: string, name: string, args: readonly unknown[]): Promise<void> {
    this.#served = await openExport(path, name, args);
  }

  #run(id: number, start: () => unknown): void {
    try {
      const made = start();
      if (made instanceof Promise || isThenable(made)) {
        made.then(
          (value: unknown) => this.#returned(id, value),
          (error: unknown) => this.#failed(id, error),
        );
      } else {
        this.#returned(id, made);
      }
    } catch (error) {
      this.#failed(id, error);
    }
  }

  #returned(id: number, value: unknown): void {
    const generated = generatedBy(value);
    if (generated === undefined) {
      this.#signals.delete(id);
      this.#answer(id, value, answered.value, answered.tagged);
      return;
    }
    const stream = new Stream(generated, {
      item: (item) => this.#answer(id, item, answered.item, answered.taggedItem),
      end: () => {
        this.#forget(id);
        this.#send([answered.end, id], []);
      },
      failed: (error) => this.#failed(id, error),
    });
    this.#streams.set(id, stream);
    this.#send([answered.stream, id], []);
  }

  #answer(id: number, value: unknown, plain: number, tagged: number): void {
    try {
      const encoded = encode(value);
      this.#send([encoded.isTagged ? tagged : plain, id, encoded.value], encoded.buffers);
    } catch (error) {
      this.#cancel(id);
      this.#failed(id, error);
    }
  }

  #failed(id: number, error: unknown): void {
    this.#forget(id);
    this.#send([answered.error, id, describeThrown(error)], []);
  }

  /**
   * Ends the stream of a call, and aborts its signal. A method without a signal runs to its end.
   */
  #cancel(id: number): void {
    this.#signals.get(id)?.abort();
    const stream = this.#streams.get(id);
    this.#forget(id);
    stream?.cancel().catch((error: unknown) => console.error(error));
  }

  #forget(id: number): void {
    this.#signals.delete(id);
    this.#streams.delete(id);
  }

  async #close(): Promise<void> {
    try {
      await this.#served?.close();
    } catch (error) {
      console.error(error);
    }
    await Promise.all([process.stdout, process.stderr].map(written));
    process.exit(0);
  }

  /** @throws RangeError for a head that is longer than a text may be */
  #send(head: readonly unknown[], buffers: readonly Uint8Array[]): void {
    const parts = encodeFrame(head, buffers);
    if (this.#out.length === 0 && !this.#isDue) {
      this.#isDue = true;
      setImmediate(() => {
        this.#isDue = false;
        this.#write();
      });
    }
    this.#out.push(...parts);
  }

  #write(): void {
    if (this.#out.length === 0) return;
    const out = joined(this.#out);
    this.#out = [];
    this.#socket.cork();
    for (const part of out) this.#socket.write(part);
    this.#socket.uncork();
  }

  #writeLast(): void {
    if (this.#out.length === 0 || this.#socket.writableLength > 0) return;
    try {
      writeSync(socketDescriptor, Buffer.concat(this.#out));
    } catch (error) {
      console.error(`answers are lost as the process ends: ${String(error)}`);
    }
  }
}

/** Resolves when what was printed has left the process: Node drops the rest when it exits. */
function written(stream: NodeJS.WritableStream): Promise<void> {
  return new Promise((resolve) => {
    if (stream.writable) stream.write("", () => resolve());
    else resolve();
  });
}

/** Up to this many bytes are cheaper to copy than to write apart. */
const smallBytes = 16_384;

function joined(parts: readonly Uint8Array[]): readonly Uint8Array[] {
  const [only] = parts;
  if (parts.length === 1 && only !== undefined) return [only];
  const result: Uint8Array[] = [];
  let small: Uint8Array[] = [];
  for (const part of parts) {
    if (part.byteLength <= smallBytes) {
      small.push(part);
      continue;
    }
    if (small.length > 0) result.push(Buffer.concat(small));
    small = [];
    result.push(part);
  }
  if (small.length > 0) result.push(Buffer.concat(small));
  return result;
}

new ActorHost(new Socket({ fd: socketDescriptor, readable: true, writable: true })).serve();
