/**
 * The direct channels of one host to others, opened as the driver says: a port between threads,
 * else a connection to the listener of one of the two.
 */
import { assertNever, type DeathCause, RaySystemError } from "../../shared/errors.ts";
import type { Channel } from "../../transport/channel.ts";
import type { Address, NetworkSettings } from "../../transport/address.ts";
import { dial } from "../../transport/link/dial.ts";
import { threadChannel } from "../../transport/thread.ts";
import type { Way } from "../host-control.ts";
import type { HostListener } from "./host-listener.ts";

export interface DirectChannelsOptions {
  readonly hostId: string;
  /** The listener of this host; undefined when it cannot be dialled. */
  readonly listener: HostListener | undefined;
  /** Resolves when that host is gone. */
  readonly death: (hostId: string) => Promise<DeathCause>;
  readonly network: NetworkSettings;
}

export class DirectChannels {
  readonly #options: DirectChannelsOptions;
  readonly #channels: Set<Channel> = new Set();

  constructor(options: DirectChannelsOptions) {
    this.#options = options;
  }

  get channels(): Iterable<Channel> {
    return this.#channels;
  }

  /** Expects a connection from the other side as the answer to a request. */
  expect(wayId: string): { end(): void } {
    return this.#options.listener?.expect(wayId) ?? { end: () => undefined };
  }

  async open(way: Way, peerId: string, wayId: string): Promise<Channel> {
    return this.keep(await this.#open(way, peerId, wayId));
  }

  keep(channel: Channel): Channel {
    this.#channels.add(channel);
    void channel.closed.then(() => this.#channels.delete(channel));
    return channel;
  }

  /** Returns the address at which this host may be dialled. */
  async address(): Promise<Address> {
    const { listener, hostId } = this.#options;
    if (listener === undefined) throw new RaySystemError(`host ${hostId} cannot be dialled`);
    return listener.address();
  }

  async #open(way: Way, peerId: string, wayId: string): Promise<Channel> {
    const { hostId, listener, death, network } = this.#options;
    const explain = (): Promise<DeathCause> => death(peerId);
    switch (way.kind) {
      case "port":
        return threadChannel(way.port, explain);
      case "dial":
        return dial(
          way.address,
          { peerId: hostId, wayId },
          { peerId, explain, network, mayBeBusy: true },
        );
      case "incoming": {
        const waiting = listener?.expected(wayId);
        if (waiting === undefined)
          throw new RaySystemError(`no request waits for channel ${wayId}`);
        return waiting;
      }
      default:
        return assertNever(way);
    }
  }
}
