/**
 * The direct channels of one host to others: opens the ways that the driver names, and listens when it is asked where it may be dialled.
 *
 * Between threads a way is a port; to a process it is a connection to the socket of that process, which lies in the folder of the session.
 */
import { join } from "node:path";
import { assertNever, type DeathCause, RaySystemError } from "../shared/errors.ts";
import type { Channel } from "../transport/channel.ts";
import { type Address, dial, type Hello, listen } from "../transport/dial.ts";
import { newToken } from "../transport/handshake.ts";
import { threadChannel } from "../transport/thread.ts";
import type { Way } from "./control.ts";

export interface WaysOptions {
  readonly hostId: string;
  /** Where its socket may lie; undefined for a host that is not dialled. */
  readonly folder: string | undefined;
  /** Resolves when that host is gone. */
  readonly death: (hostId: string) => Promise<DeathCause>;
  /** A host dialled that was not asked to. */
  readonly onChannel: (peerId: string, channel: Channel) => void;
}

/** A request whose answer may be a connection from the other side. */
interface Expected {
  /** Nobody waits for it any longer. */
  end(): void;
}

export class Ways {
  readonly #options: WaysOptions;
  readonly #expected: Map<string, PromiseWithResolvers<Channel>> = new Map();
  readonly #channels: Set<Channel> = new Set();
  #address: Promise<Address> | undefined;

  constructor(options: WaysOptions) {
    this.#options = options;
  }

  get channels(): Iterable<Channel> {
    return this.#channels;
  }

  expect(wayId: string): Expected {
    const waiting = Promise.withResolvers<Channel>();
    this.#expected.set(wayId, waiting);
    return { end: () => void this.#expected.delete(wayId) };
  }

  async open(way: Way, peerId: string, wayId: string): Promise<Channel> {
    return this.#keep(await this.#open(way, peerId, wayId));
  }

  /** Where this host may be dialled; it listens from the first question on. */
  address(): Promise<Address> {
    this.#address ??= this.#listen();
    return this.#address;
  }

  async #open(way: Way, peerId: string, wayId: string): Promise<Channel> {
    const explain = (): Promise<DeathCause> => this.#options.death(peerId);
    switch (way.kind) {
      case "port":
        return threadChannel(way.port, explain);
      case "dial":
        return dial(way.address, { peerId: this.#options.hostId, wayId }, { peerId, explain });
      case "incoming": {
        const waiting = this.#expected.get(wayId);
        if (waiting === undefined) throw new RaySystemError(`nobody asked for way ${wayId}`);
        return waiting.promise;
      }
      default:
        return assertNever(way);
    }
  }

  async #listen(): Promise<Address> {
    const { hostId, folder, death } = this.#options;
    if (folder === undefined) throw new RaySystemError(`host ${hostId} cannot be dialled`);
    const address = { place: { path: join(folder, hostId) }, token: newToken() };
    await listen({
      address,
      explain: death,
      onChannel: (channel, hello) => this.#accept(this.#keep(channel), hello),
    });
    return address;
  }

  #accept(channel: Channel, { peerId, wayId }: Hello): void {
    // A host that dials itself has asked for this way, and is on its other end as well.
    const isOwn = peerId === this.#options.hostId;
    const waiting = wayId === undefined || isOwn ? undefined : this.#expected.get(wayId);
    if (waiting === undefined) this.#options.onChannel(peerId, channel);
    else waiting.resolve(channel);
  }

  #keep(channel: Channel): Channel {
    this.#channels.add(channel);
    void channel.closed.then(() => this.#channels.delete(channel));
    return channel;
  }
}
