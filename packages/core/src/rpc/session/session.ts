/**
 * A conversation between two runtimes over one channel: calls in both directions, answers, fetches,
 * reference counts. It knows nothing of actors, retries or values.
 *
 * Every request settles exactly once: by its answer or by the loss of the peer. Its parts: what has
 * arrived (IncomingBatches), what is about to be sent (Outbox), our requests and their credit
 * (Requests), the peer's calls and what it may have under way (IncomingCalls), values that travel
 * in parts (PartTransfers), and calls to one actor (CallWindows).
 */
import { type Encoded, giveBackLent, sizeOf } from "../../protocol/codec.ts";
import type { Answer, CallMessage, FetchMessage, Message, Notice } from "../../protocol/message.ts";
import { assertNever, type DeathCause } from "../../shared/errors.ts";
import type { Channel } from "../../transport/channel.ts";
import { CallWindows } from "./call-window.ts";
import { type CreditLimits, defaultCredit } from "./credit.ts";
import { IncomingBatches } from "./incoming-batches.ts";
import { IncomingCalls } from "./incoming-calls.ts";
import { Outbox } from "./outbox.ts";
import { PartTransfers, type Room } from "./part-transfers.ts";
import { Requests } from "./requests.ts";

/** Handlers for everything that arrives, given by the owner of a session. */
export interface SessionReceiver {
  onCall(call: CallMessage, session: Session): void;
  onFetch(fetch: FetchMessage, session: Session): void;
  onValue(objectId: string, value: Encoded): void;
  onReference(objectId: string, holder: string, change: number): void;
  /** A borrower of one of our objects asks to cancel the call that makes it. */
  onCancelObject(objectId: string, recursive: boolean, force: boolean): void;
  /** References are about to leave inside a value. */
  onExport(references: readonly object[]): void;
  /** Nobody will look at a value that arrived, or at the rest of it. */
  onUnread(value: Encoded): void;
  /** A value of so many bytes is about to come in parts: `begin` is called when there is room. */
  onParts(bytes: number, session: Session, begin: (room: Room) => void): void;
  /** Calls of that target that may run together here; undefined when none waits here. */
  concurrencyOf?(target: string): number | undefined;
}

export class Session {
  readonly peerId: string;
  /** Resolves after everything pending was told of the loss. */
  readonly closed: Promise<DeathCause>;
  /** Our calls and fetches that have no answer yet. */
  readonly requests: Requests;
  /** The peer's calls that have no answer yet. */
  readonly calls: IncomingCalls;
  /** Calls to each of the peer's actors. */
  readonly windows: CallWindows = new CallWindows();
  readonly #channel: Channel;
  readonly #receiver: SessionReceiver;
  readonly #outbox: Outbox;
  readonly #incoming: IncomingBatches;
  readonly #parts: PartTransfers;
  readonly #closeWatchers: Set<(reason: DeathCause) => void> = new Set();
  /** The side that ends soon, and said so. */
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
    this.#outbox = new Outbox(channel);
    this.requests = new Requests(
      credit,
      (id, { objectId, whole }) => this.#outbox.send({ kind: "fetch", id, objectId, whole }),
      () => channel.sentClaims,
    );
    this.calls = new IncomingCalls(
      {
        maxBytes: credit.maxBytes,
        concurrencyOf: (target) => receiver.concurrencyOf?.(target),
      },
      (value) => receiver.onUnread(value),
      () => this.#outbox.lapSinceMs,
      () => channel.receivedClaims,
    );
    this.#parts = new PartTransfers(
      channel,
      (message) => this.#outbox.send(message),
      this.requests,
      (bytes, begin) => receiver.onParts(bytes, this, begin),
    );
    this.closed = channel.closed.then((reason) => {
      this.#lose(reason);
      return reason;
    });
    this.#incoming = new IncomingBatches({
      channel,
      outbox: this.#outbox,
      parts: this.#parts,
      onMessage: (message) => this.#onMessage(message),
      onCancelAhead: (id, recursive) => this.calls.cancelAhead(id, recursive),
    });
    channel.onMessage((batch) => this.#incoming.receive(batch));
  }

  /** False from the moment on from which no call can be answered. */
  get isOpen(): boolean {
    return !this.#outbox.isClosed && this.#leaving !== "they" && this.#channel.isOpen;
  }

  /** False from the moment on from which nothing more goes over it. */
  get isConnected(): boolean {
    return !this.#outbox.isClosed && this.#channel.isOpen;
  }

  /** Calls back after everything pending was told of the loss. Returns how to stop watching. */
  whenClosed(watcher: (reason: DeathCause) => void): () => void {
    this.#closeWatchers.add(watcher);
    return () => void this.#closeWatchers.delete(watcher);
  }

  /** Sends a call by the id that `requests.add` gave for it. */
  call(call: CallMessage): void {
    this.#export(call.arguments);
    for (const dependency of call.dependencies) this.#export(dependency);
    const isAlone = this.requests.size === 1;
    this.requests.credit.charge(call.id, this.#outbox.send(call, isAlone));
  }

  /** A signal among the arguments of one of our calls is aborted. */
  abort(id: number, index: number, reason: Encoded): void {
    if (this.#outbox.isClosed) return;
    this.#export(reason);
    this.requests.credit.charge(id, this.#outbox.send({ kind: "abort", id, index, reason }));
  }

  /**
   * Tells the other side something that has no answer. Lent memory of a value is given back; nobody
   * reads that value any more.
   */
  send(notice: Notice): void {
    if (this.#outbox.isClosed) return;
    if ("value" in notice) this.#export(notice.value);
    this.#outbox.send(notice);
    if ("value" in notice) giveBackLent(notice.value);
    if (notice.kind === "item") this.#outbox.flushIfLate();
  }

  /**
   * Answers one of the peer's calls or fetches. Lent memory of a value is given back; nobody reads
   * that value any more.
   */
  answer(answer: Answer): void {
    this.calls.ended(answer.id);
    if (this.#outbox.isClosed) return;
    if (answer.kind === "result") this.#export(answer.value);
    else if (answer.kind === "failure") this.#export(answer.error);
    else if (answer.kind === "results") for (const value of answer.values) this.#export(value);
    this.#outbox.send(answer);
    if (answer.kind === "result") giveBackLent(answer.value);
    this.#outbox.flushIfLate();
  }

  /** Answers a fetch; a big value goes in parts, where it is copied at all. */
  answerFetch(id: number, value: Encoded): void {
    if (this.#outbox.isClosed) return;
    if (this.#parts.announce(id, value)) this.#export(value);
    else this.answer({ kind: "result", id, value });
  }

  /** This side ends soon and starts nothing more: calls that it has not answered never began. */
  leave(): void {
    if (this.#outbox.isClosed || this.#leaving !== undefined) return;
    this.#outbox.send({ kind: "leaving" });
    this.#leaving = "we";
  }

  /** Takes in what has arrived while this thread was held: cancellations count at once. */
  poll(): void {
    this.#incoming.poll();
  }

  /** Calls back once, after the batch that is being read; at once if none is. */
  afterBatch(then: () => void): void {
    this.#incoming.afterBatch(then);
  }

  /** Milliseconds since the last lap, or since the batch arrived: how long a method took. */
  lap(): number {
    return this.#outbox.lap();
  }

  /** Sends what is gathered, without waiting for the end of the turn. */
  flush(): void {
    this.#outbox.flush();
  }

  close(reason: DeathCause): void {
    this.#outbox.flush();
    this.#channel.close(reason);
  }

  #export({ references }: Encoded): void {
    if (references !== undefined && references.length > 0) this.#receiver.onExport(references);
  }

  #onMessage(message: Message): void {
    switch (message.kind) {
      case "result":
      case "failure":
      case "results":
      case "gone":
      case "absent":
      case "cancelled":
        this.requests.take(message.id)?.settle(message);
        break;
      case "call":
        this.calls.check(message);
        if (this.#leaving === "we") break;
        this.calls.begin(message);
        if (this.calls.isCancelled(message.id)) {
          this.answer({ kind: "cancelled", id: message.id });
          break;
        }
        this.#receiver.onCall(message, this);
        this.calls.handedOver(message);
        break;
      case "leaving":
        this.#leaving = "they";
        this.requests.neverBegan();
        break;
      case "item":
        this.requests.peek(message.id)?.item?.(message.index, message.value);
        break;
      case "consumed":
        this.calls.consumed(message.id, message.count);
        break;
      case "cancel":
        this.calls.cancel(message.id, message.recursive);
        break;
      case "abort":
        this.calls.aborted(message, sizeOf(message.reason));
        break;
      case "fetch":
        this.calls.beginFetch(message.id);
        this.#receiver.onFetch(message, this);
        break;
      case "value":
        this.#receiver.onValue(message.objectId, message.value);
        break;
      case "cancel-object":
        this.#receiver.onCancelObject(message.objectId, message.recursive, message.force);
        break;
      case "parts":
        this.#parts.announced(message);
        break;
      case "want":
        if (this.#parts.wanted(message.id, message.count)) this.calls.ended(message.id);
        break;
      case "reference":
        this.#receiver.onReference(message.objectId, message.holder, message.change);
        break;
      default:
        assertNever(message);
    }
  }

  #lose(reason: DeathCause): void {
    this.#outbox.close();
    this.requests.lose(reason);
    this.#parts.close();
    this.requests.credit.resumeAll();
    this.calls.callersLost();
    for (const watcher of this.#closeWatchers) watcher(reason);
    this.#closeWatchers.clear();
  }
}
