/**
 * A conversation between two runtimes over one channel: calls in both directions, answers, fetches, reference counts.
 *
 * Owns the pending table (every pending entry settles exactly once: by result, failure or loss of the peer), the gathering of
 * one turn's messages into one batch, and credit: at most `maxCalls` calls (twice an actor's concurrency, if that is more) and `maxBytes` of arguments are
 * unanswered; the caller keeps the rest. Knows nothing of actors, retries or values.
 */
import type { Encoded } from "../protocol/codec.ts";
import { warnOfCopies } from "../protocol/values/live-memory.ts";
import type { Batch, Message, Part, Route } from "../protocol/message.ts";
import { BatchReader } from "../protocol/frames/batch-reader.ts";
import { BatchWriter } from "../protocol/frames/batch-writer.ts";
import { assertNever, type DeathCause, RaySystemError } from "../shared/errors.ts";
import { Fifo } from "../shared/fifo.ts";
import { Lane } from "./lane.ts";
import { Ledger, maxFetches } from "./ledger.ts";
import { IncomingParts, OutgoingParts, wholeBytes } from "./parts.ts";
import { type Pending, PendingTable } from "./pending-table.ts";
import { brokenChannel, type Channel } from "../transport/channel.ts";
import { peerLimits } from "../transport/framing.ts";

export type CallMessage = Extract<Message, { kind: "call" }>;

/** A call that arrived and is not answered yet, for what may still come for it. */
export interface Running {
  cancel(recursive: boolean): void;
  /** The consumer has taken so many items of its stream. */
  consumed(count: number): void;
  /** A signal among its arguments is aborted. */
  aborted(index: number, reason: Encoded): void;
  /** Nobody hears its answer any more. */
  callerLost(): void;
}

/** What the owner of a session does with what arrives. */
export interface SessionReceiver {
  onCall(call: CallMessage, session: Session): void;
  onFetch(id: number, objectId: string, whole: boolean, session: Session): void;
  onValue(objectId: string, value: Encoded): void;
  onReference(objectId: string, holder: string, change: number): void;
  /** A borrower of one of our objects wants it no more. */
  onCancelObject(objectId: string, recursive: boolean, force: boolean): void;
  /** References are about to leave inside a value. */
  onExport(references: readonly object[]): void;
  /** A value arrived that nobody has looked at, or not at all of it, and nobody will. */
  onUnread(value: Encoded): void;
  /** A value of so many bytes is about to come in parts: `begin` is called when there is room for it. */
  onParts(bytes: number, session: Session, begin: (room: Room) => void): void;
  /** Calls of that target that may run together here; undefined when none waits here. */
  concurrencyOf?(target: string): number | undefined;
}

/** What a value that comes in parts takes up on its way. */
export interface Room {
  /** A part came. */
  came(): void;
  /** The value is here, or lost. */
  end(): void;
}

export interface CreditLimits {
  readonly maxCalls: number;
  readonly maxBytes: number;
}

/** More than any default concurrency (1,000), so that calls which wait for each other all reach the actor; 16 MiB of small arguments. */
export const defaultCredit: CreditLimits = { maxCalls: 4096, maxBytes: 16 * 1024 * 1024 };

const noBytes: Uint8Array = new Uint8Array(0);
const noBuffers: readonly SharedArrayBuffer[] = [];

/** A batch leaves early at this size, so that the other side starts while this one still writes (measured in bench/). */
const earlyFlushBytes = 8 * 1024;

/** So do answers after this time: a turn of slow methods must not hold back the answer of the first. */
const earlyFlushMs = 1;

/** Undefined until there is room for it. */
type Incoming = { readonly parts: IncomingParts; readonly room: Room } | undefined;

interface LaterFetch {
  readonly objectId: string;
  readonly whole: boolean;
  readonly pending: Pending;
}

interface CreditWaiter {
  readonly maxConcurrency: number;
  readonly resume: () => void;
}

export class Session {
  readonly peerId: string;
  /** Resolves after everything pending was told of the loss. */
  readonly closed: Promise<DeathCause>;
  readonly #channel: Channel;
  readonly #receiver: SessionReceiver;
  readonly #credit: CreditLimits;
  readonly #writer: BatchWriter = new BatchWriter();
  readonly #reader: BatchReader = new BatchReader();
  readonly #pending: PendingTable = new PendingTable();
  readonly #creditWaiters: Fifo<CreditWaiter> = new Fifo();
  readonly #closeWatchers: Set<(reason: DeathCause) => void> = new Set();
  /** By the caller's id, which is a slot number and so small. */
  readonly #running: (Running | undefined)[] = [];
  readonly #ledger: Ledger;
  /** The last call whose arguments were decoded. */
  #readId = -1;
  /** Of the other side's actors. */
  readonly #lanes: Map<string, Lane> = new Map();
  /** Numbers of our fetches, and those that wait until they are less. */
  readonly #fetches: Set<number> = new Set();
  readonly #laterFetches: Fifo<LaterFetch> = new Fifo();
  /** Calls with refs among their arguments that nobody has looked at. */
  readonly #unread: Map<number, CallMessage> = new Map();
  /** By the number of the fetch: of the peer's, and of ours. */
  readonly #outgoing: Map<number, OutgoingParts> = new Map();
  readonly #incoming: Map<number, Incoming> = new Map();
  /** Taken in by `poll`, to be handled in their turn. */
  #polled: Batch[] = [];
  #afterBatch: (() => void) | undefined;
  /** Cancelled by what `poll` took in, before their own turn. */
  readonly #cancelledAhead: Set<number> = new Set();
  #bytes = 0;
  #lapSince = 0;
  #unsentMs = 0;
  #state: "open" | "flush-scheduled" | "receiving" | "closed" = "open";
  /** Which side ends soon, and said so. */
  #leaving: "we" | "they" | undefined;

  constructor(
    peerId: string,
    channel: Channel,
    receiver: SessionReceiver,
    credit: CreditLimits = defaultCredit,
  ) {
    this.peerId = peerId;
    this.#channel = channel;
    this.#receiver = receiver;
    this.#credit = credit;
    this.#ledger = new Ledger({
      maxBytes: credit.maxBytes,
      concurrencyOf: (target) => receiver.concurrencyOf?.(target),
    });
    this.closed = channel.closed.then((reason) => {
      this.#lose(reason);
      return reason;
    });
    channel.takeParts?.((id, size) => this.#placeOfPart(id, size));
    channel.onMessage((batch) => this.#receive(batch));
  }

  /** False from the moment on from which no call can be answered. */
  get isOpen(): boolean {
    return this.#state !== "closed" && this.#leaving !== "they" && this.#channel.isOpen;
  }

  /** False from the moment on from which nothing more goes over it. */
  get isConnected(): boolean {
    return this.#state !== "closed" && this.#channel.isOpen;
  }

  /** Calls that were sent and not answered. */
  get pendingCalls(): number {
    return this.#pending.size;
  }

  /** Those, oldest first, and what else waits for an answer. */
  get pending(): Iterable<Pending> {
    return this.#pending.all();
  }

  hasCredit(maxConcurrency: number): boolean {
    // Calls that may run together may wait for each other: they all go, whatever their size.
    if (this.#pending.size < 2 * maxConcurrency) return true;
    return (
      this.#pending.size < Math.max(this.#credit.maxCalls, 2 * maxConcurrency) &&
      this.#bytes < this.#credit.maxBytes
    );
  }

  /** Of calls to that target, until it is left. */
  laneTo(target: string): Lane {
    let lane = this.#lanes.get(target);
    if (lane === undefined) {
      lane = new Lane(target);
      this.#lanes.set(target, lane);
    }
    lane.enter();
    return lane;
  }

  leaveLane(lane: Lane): void {
    lane.leave();
    if (lane.isOver) this.#lanes.delete(lane.target);
  }

  /** Targets that calls may go to. */
  get laneCount(): number {
    return this.#lanes.size;
  }

  /** Calls back once when there is credit again, or the session is closed. */
  whenCredit(maxConcurrency: number, resume: () => void): void {
    this.#creditWaiters.push({ maxConcurrency, resume });
  }

  /** Calls back when it is closed, after everything pending was told. Returns the end of that wish. */
  whenClosed(watcher: (reason: DeathCause) => void): () => void {
    this.#closeWatchers.add(watcher);
    return () => void this.#closeWatchers.delete(watcher);
  }

  /** Returns the number of the call in this session, as long as it is unanswered. */
  call(
    route: Route,
    sequence: number,
    args: Encoded,
    dependencies: readonly Encoded[],
    pending: Pending,
  ): number {
    this.#export(args);
    for (const dependency of dependencies) this.#export(dependency);
    const id = this.#pending.add(pending);
    const bytes = this.#send({ kind: "call", id, sequence, route, arguments: args, dependencies });
    this.#pending.charge(id, bytes);
    this.#bytes += bytes;
    return id;
  }

  /** Asks the other side to end a call early; it is still answered. */
  cancel(id: number, recursive: boolean): void {
    if (this.#state !== "closed") this.#send({ kind: "cancel", id, recursive });
  }

  /** A signal among the arguments of a call is aborted. */
  abort(id: number, index: number, reason: Encoded): void {
    if (this.#state === "closed") return;
    this.#export(reason);
    const bytes = this.#send({ kind: "abort", id, index, reason });
    this.#pending.charge(id, this.#pending.bytesOf(id) + bytes);
    this.#bytes += bytes;
  }

  /** The same of an object that the other side owns. */
  cancelObject(objectId: string, recursive: boolean, force: boolean): void {
    if (this.#state !== "closed") this.#send({ kind: "cancel-object", objectId, recursive, force });
  }

  /** Tells the producer of a stream how many items were taken. */
  consumed(id: number, count: number): void {
    if (this.#state !== "closed") this.#send({ kind: "consumed", id, count });
  }

  /** @param whole the value itself is wanted, wherever it is now */
  fetch(objectId: string, whole: boolean, pending: Pending): void {
    if (this.#fetches.size >= maxFetches) {
      return this.#laterFetches.push({ objectId, whole, pending });
    }
    const id = this.#pending.add(pending);
    this.#fetches.add(id);
    this.#send({ kind: "fetch", id, objectId, whole });
  }

  answer(id: number, value: Encoded): void {
    this.#ended(id);
    if (this.#state === "closed") return;
    this.#export(value);
    this.#send({ kind: "result", id, value });
    this.#flushIfLate();
  }

  /** The same to a fetch: many bytes go in parts, where they are copied at all. */
  answerFetch(id: number, value: Encoded): void {
    if (this.#state === "closed") return;
    const isCopied = this.#channel.takeParts !== undefined;
    if (!isCopied || bytesOf(value) <= wholeBytes) return this.answer(id, value);
    const writer = new BatchWriter();
    writer.write({ kind: "result", id, value });
    if (writer.live !== undefined) warnOfCopies(writer.live);
    const { bytes, buffers } = writer.take();
    const sizes = buffers.map(({ byteLength }) => byteLength);
    if (sumOf(sizes) <= wholeBytes) return this.answer(id, value);
    this.#export(value);
    this.#outgoing.set(id, new OutgoingParts(id, buffers));
    this.#send({ kind: "parts", id, bytes, sizes });
  }

  answerAll(id: number, values: readonly Encoded[]): void {
    this.#ended(id);
    if (this.#state === "closed") return;
    for (const value of values) this.#export(value);
    this.#send({ kind: "results", id, values });
    this.#flushIfLate();
  }

  /** The actor ended before the call did. */
  answerGone(id: number): void {
    this.#ended(id);
    if (this.#state !== "closed") this.#send({ kind: "gone", id });
  }

  /** There is no such actor here. */
  answerAbsent(id: number): void {
    this.#ended(id);
    if (this.#state !== "closed") this.#send({ kind: "absent", id });
  }

  answerCancelled(id: number): void {
    this.#ended(id);
    if (this.#state !== "closed") this.#send({ kind: "cancelled", id });
  }

  sendItem(id: number, index: number, value: Encoded): void {
    if (this.#state === "closed") return;
    this.#export(value);
    this.#send({ kind: "item", id, index, value });
    this.#flushIfLate();
  }

  answerFailure(id: number, error: Encoded): void {
    this.#ended(id);
    if (this.#state === "closed") return;
    this.#export(error);
    this.#send({ kind: "failure", id, error });
    this.#flushIfLate();
  }

  /** Gives the other side the value of an object of ours that it holds. */
  handOver(objectId: string, value: Encoded): void {
    if (this.#state === "closed") return;
    this.#export(value);
    this.#send({ kind: "value", objectId, value });
  }

  changeReference(objectId: string, holder: string, change: number): void {
    if (this.#state === "closed") return;
    this.#send({ kind: "reference", objectId, holder, change });
  }

  /** The arguments of that call are decoded. */
  wasRead(id: number): void {
    this.#readId = id;
    if (this.#unread.size > 0) this.#unread.delete(id);
  }

  /** A call that does not end in the turn in which it arrived; untrack it before it is answered. */
  track(id: number, running: Running): void {
    this.#running[id] = running;
  }

  runningOf(id: number): Running | undefined {
    return this.#running[id];
  }

  untrack(id: number): void {
    this.#running[id] = undefined;
  }

  /** Those. */
  *tracked(): Iterable<Running> {
    for (const running of this.#running) if (running !== undefined) yield running;
  }

  /** This side ends soon and starts nothing more: for the other side, what it has no answer to has never begun. */
  leave(): void {
    if (this.#state === "closed" || this.#leaving !== undefined) return;
    this.#send({ kind: "leaving" });
    this.#leaving = "we";
  }

  /** Takes in what has arrived while this thread was held: cancellations count from now on, the rest has its turn later. */
  poll(): void {
    const batches = this.#channel.poll?.() ?? [];
    if (batches.length === 0 || this.#state === "closed") return;
    if (this.#polled.length === 0 && this.#state !== "receiving")
      process.nextTick(() => this.#receiveNext());
    this.#polled.push(...batches);
    const reader = new BatchReader(true);
    for (const batch of batches) {
      try {
        reader.read(batch, (message) => {
          if (message.kind === "cancel") this.#cancelAhead(message.id, message.recursive);
        });
      } catch {
        // It is read again in its turn, and ends the channel then.
        return;
      }
    }
  }

  /** Whether a call that is not tracked was cancelled meanwhile. */
  isCancelled(id: number): boolean {
    return this.#cancelledAhead.size > 0 && this.#cancelledAhead.has(id);
  }

  /** Calls back when the batch is read that is being read: once. Or now, if none is. */
  afterBatch(then: () => void): void {
    if (this.#state === "receiving") this.#afterBatch = then;
    else then();
  }

  /** Milliseconds since it was last asked, or since the batch came: how long the method that just ran took, with one look at the clock. */
  lap(): number {
    const now = performance.now();
    const ms = now - this.#lapSince;
    this.#lapSince = now;
    this.#unsentMs += ms;
    return ms;
  }

  /** Sends what was gathered, without waiting for the end of the turn. */
  flush(): void {
    if (this.#state === "closed") return;
    if (this.#state === "flush-scheduled") this.#state = "open";
    if (this.#writer.length > 0) this.#post();
  }

  close(reason: DeathCause): void {
    if (this.#state !== "closed") this.flush();
    this.#channel.close(reason);
  }

  #send(message: Message): number {
    const bytes = this.#writer.write(message);
    if (this.#writer.length > earlyFlushBytes) {
      this.#post();
    } else if (this.#state === "open") {
      // The end of the turn: after nextTick come no more promise reactions of it.
      this.#state = "flush-scheduled";
      process.nextTick(() => this.#endTurn());
    }
    return bytes;
  }

  /** A channel that is closed already has told nobody yet: what is pending is about to be lost. */
  #post(): void {
    const { live } = this.#writer;
    const batch = this.#writer.take();
    if (live !== undefined && this.#channel.takeParts !== undefined) warnOfCopies(live);
    if (this.#channel.isOpen) this.#channel.send(batch);
  }

  #flushIfLate(): void {
    if (this.#unsentMs <= earlyFlushMs) return;
    this.#unsentMs = 0;
    this.flush();
  }

  #endTurn(): void {
    if (this.#state === "closed") return;
    this.#state = "open";
    this.flush();
  }

  #export(value: Encoded): void {
    if (value.references !== undefined && value.references.length > 0) {
      this.#receiver.onExport(value.references);
    }
  }

  /** In order: what was polled came before what comes now. */
  #receive(batch: Batch): void {
    if (this.#polled.length === 0) this.#read(batch);
    else this.#polled.push(batch);
    this.#receiveNext();
  }

  #receiveNext(): void {
    while (this.#polled.length > 0) {
      const next = this.#polled.shift();
      if (next !== undefined) this.#read(next);
    }
  }

  #read(batch: Batch): void {
    if (this.#state === "closed") return;
    this.#state = "receiving";
    this.#lapSince = performance.now();
    this.#unsentMs = 0;
    try {
      if (batch.part === undefined) this.#reader.read(batch, (message) => this.#onMessage(message));
      else this.#partArrived(batch.part);
    } catch (error) {
      return this.#channel.close(brokenChannel(error));
    } finally {
      const then = this.#afterBatch;
      this.#afterBatch = undefined;
      then?.();
    }
    this.#endTurn();
  }

  /** @throws RaySystemError for one that is not on its way */
  #placeOfPart(id: number, size: number): Uint8Array {
    const incoming = this.#incoming.get(id);
    if (incoming === undefined) throw new RaySystemError(`nobody waits for a part of ${id}`);
    return incoming.parts.place(size);
  }

  #announced(id: number, announced: Uint8Array, sizes: readonly number[]): void {
    if (this.#pending.peek(id) === undefined || this.#incoming.has(id)) {
      throw new RaySystemError(`nobody waits for the parts of ${id}`);
    }
    const total = sumOf(sizes);
    if (total === 0 || total > peerLimits.maxBufferBytes) {
      throw new RaySystemError(`parts of ${total} bytes are over the limit`);
    }
    // Not the chunk that it came in.
    const bytes = announced.slice();
    this.#incoming.set(id, undefined);
    this.#receiver.onParts(total, this, (room) => {
      if (this.#state === "closed") return room.end();
      try {
        this.#incoming.set(id, { parts: new IncomingParts(id, bytes, sizes), room });
        this.#wantMore(id);
      } catch (error) {
        this.#incoming.delete(id);
        room.end();
        this.#send({ kind: "want", id, count: 0 });
        this.#take(id)?.refuse?.(total, String(error));
      }
    });
  }

  #wantMore(id: number): void {
    const count = this.#incoming.get(id)?.parts.want() ?? 0;
    if (count > 0) this.#send({ kind: "want", id, count });
  }

  #sendParts(id: number, count: number): void {
    const outgoing = this.#outgoing.get(id);
    if (outgoing === undefined) throw new RaySystemError(`there are no parts of ${id} to want`);
    outgoing.want(count);
    for (const part of outgoing.next()) {
      if (this.#channel.isOpen) this.#channel.send({ bytes: noBytes, buffers: noBuffers, part });
    }
    if (count > 0 && !outgoing.isDone) return;
    this.#outgoing.delete(id);
    this.#ledger.ended(id);
  }

  #partArrived({ id, data }: Part): void {
    const incoming = this.#incoming.get(id);
    if (incoming === undefined) throw new RaySystemError(`nobody waits for a part of ${id}`);
    const { parts, room } = incoming;
    parts.arrived(data.length);
    room.came();
    if (!parts.isWhole) return this.#wantMore(id);
    this.#incoming.delete(id);
    room.end();
    this.#reader.read(parts.batch, (message) => {
      if (message.kind !== "result" || message.id !== id) {
        throw new RaySystemError(`the parts of ${id} are no answer to it`);
      }
      this.#onMessage(message);
    });
  }

  #cancelAhead(id: number, recursive: boolean): void {
    const running = this.#running[id];
    if (running !== undefined) running.cancel(recursive);
    else this.#cancelledAhead.add(id);
  }

  #onMessage(message: Message): void {
    switch (message.kind) {
      case "result":
        this.#take(message.id)?.resolve(message.value);
        break;
      case "failure":
        this.#take(message.id)?.reject(message.error);
        break;
      case "call":
        this.#called(message);
        break;
      case "results":
        this.#take(message.id)?.resolveAll?.(message.values);
        break;
      case "gone":
        this.#take(message.id)?.gone?.();
        break;
      case "absent":
        this.#take(message.id)?.absent?.();
        break;
      case "leaving":
        this.#leaving = "they";
        for (const id of this.#pending.calls()) this.#take(id)?.absent?.();
        break;
      case "cancelled":
        this.#take(message.id)?.cancelled?.();
        break;
      case "item":
        this.#pending.peek(message.id)?.item?.(message.index, message.value);
        break;
      case "consumed":
        this.#running[message.id]?.consumed(message.count);
        break;
      case "cancel":
        this.#running[message.id]?.cancel(message.recursive);
        if (this.#cancelledAhead.size > 0) this.#cancelledAhead.delete(message.id);
        break;
      case "abort": {
        this.#ledger.aborted(message.id, bytesOf(message.reason));
        const running = this.#running[message.id];
        if (running === undefined) this.#receiver.onUnread(message.reason);
        else running.aborted(message.index, message.reason);
        break;
      }
      case "fetch":
        this.#ledger.beginFetch(message.id);
        this.#receiver.onFetch(message.id, message.objectId, message.whole, this);
        break;
      case "value":
        this.#receiver.onValue(message.objectId, message.value);
        break;
      case "cancel-object":
        this.#receiver.onCancelObject(message.objectId, message.recursive, message.force);
        break;
      case "parts":
        this.#announced(message.id, message.bytes, message.sizes);
        break;
      case "want":
        this.#sendParts(message.id, message.count);
        break;
      case "reference":
        this.#receiver.onReference(message.objectId, message.holder, message.change);
        break;
      default:
        assertNever(message);
    }
  }

  /** @throws RaySystemError for a call that the peer may not make now: a number is given out again when its call was answered */
  #called(call: CallMessage): void {
    const { id } = call;
    this.#ledger.checkCall(id, call.route.target);
    if (id < this.#running.length && this.#running[id] !== undefined) {
      throw new RaySystemError(`call ${id} is under way`);
    }
    if (this.#leaving === "we") return;
    if (hasReferences(call)) this.#unread.set(id, call);
    if (this.isCancelled(id)) return this.answerCancelled(id);
    this.#readId = -1;
    this.#receiver.onCall(call, this);
    if (this.#running[id] !== undefined) this.#ledger.hold(call, this.#readId === id);
  }

  /** A call has its answer: what nobody has looked at until now, nobody will. */
  #ended(id: number): void {
    this.#ledger.ended(id);
    if (this.#unread.size === 0) return;
    const call = this.#unread.get(id);
    if (call === undefined) return;
    this.#unread.delete(id);
    for (const value of [call.arguments, ...call.dependencies]) this.#receiver.onUnread(value);
  }

  #take(id: number): Pending | undefined {
    const pending = this.#pending.take(id);
    if (pending === undefined) return undefined;
    this.#bytes -= this.#pending.bytesOf(id);
    if (this.#fetches.size > 0 && this.#fetches.delete(id)) {
      const later = this.#laterFetches.shift();
      if (later !== undefined) this.fetch(later.objectId, later.whole, later.pending);
    }
    if (this.#creditWaiters.size > 0) this.#resumeWaiters();
    return pending;
  }

  /** In order of asking, as long as there is credit: one that uses it up ends the loop. */
  #resumeWaiters(): void {
    for (;;) {
      const first = this.#creditWaiters.peek();
      if (first === undefined || !this.hasCredit(first.maxConcurrency)) return;
      this.#creditWaiters.shift();
      first.resume();
    }
  }

  #lose(reason: DeathCause): void {
    this.#state = "closed";
    this.#bytes = 0;
    for (const pending of this.#pending.takeAll()) pending.lose(reason);
    for (const { pending } of this.#laterFetches.drain()) pending.lose(reason);
    for (const incoming of this.#incoming.values()) incoming?.room.end();
    this.#incoming.clear();
    this.#outgoing.clear();
    for (const { resume } of this.#creditWaiters.drain()) resume();
    for (const running of this.#running) running?.callerLost();
    for (const watcher of this.#closeWatchers) watcher(reason);
    this.#closeWatchers.clear();
  }
}

function hasReferences({ arguments: args, dependencies }: CallMessage): boolean {
  return args.referenceCount > 0 || dependencies.some(({ referenceCount }) => referenceCount > 0);
}

function bytesOf({ start, end, buffers }: Encoded): number {
  return end - start + sumOf(buffers.map(({ byteLength }) => byteLength));
}

function sumOf(sizes: readonly number[]): number {
  return sizes.reduce((sum, size) => sum + size, 0);
}
