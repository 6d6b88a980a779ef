/**
 * The listener of a host: on a path of its machine, for the other hosts there; or on a port, for
 * hosts of other machines and for its driver.
 *
 * A connection may be the answer to a request of this host (a channel that another host opens); any
 * other comes from a host with calls for it.
 */
import type { AddressInfo } from "node:net";
import { dirname } from "node:path";
import { type DeathCause, RaySystemError } from "../../shared/errors.ts";
import type { Channel } from "../../transport/channel.ts";
import type { Address, Hello, NetworkSettings } from "../../transport/address.ts";
import { listen, type Listener } from "../../transport/link/listen.ts";
import type { PortRange } from "../host-control.ts";
import { codeOf } from "../../shared/errors/thrown.ts";
import { makeUserDirectory } from "../../shared/machine/make-directory.ts";

/** A request whose answer may be a connection from the other side. */
export interface Expected {
  readonly channel: Promise<Channel>;
  /** Stops waiting for the connection. */
  end(): void;
}

export interface HostListenerParts {
  readonly hostId: string;
  /** The address to listen on; port 0 becomes an assigned one. */
  readonly address: Address;
  /** The host name that others dial, if it differs from the listening one. */
  readonly publicHost?: string;
  /** The listener takes the first free port of these, instead of the port of its address. */
  readonly ports?: PortRange;
  readonly network: NetworkSettings;
  /** Resolves when that peer is gone. */
  readonly death: (peerId: string) => Promise<DeathCause>;
  /** Called for a host that dialled without a request. */
  readonly onChannel: (peerId: string, channel: Channel) => void;
}

export class HostListener {
  readonly #parts: HostListenerParts;
  readonly #expected: Map<string, PromiseWithResolvers<Channel>> = new Map();
  #address: Promise<Address> | undefined;

  constructor(parts: HostListenerParts) {
    this.#parts = parts;
  }

  /** Returns the address; the listener opens at the first call, and after a failure at the next. */
  address(): Promise<Address> {
    this.#address ??= this.#open().catch((error: unknown) => {
      this.#address = undefined;
      throw error;
    });
    return this.#address;
  }

  expect(wayId: string): Expected {
    const waiting = Promise.withResolvers<Channel>();
    this.#expected.set(wayId, waiting);
    return { channel: waiting.promise, end: () => void this.#expected.delete(wayId) };
  }

  /** Returns the channel that was requested by that name. */
  expected(wayId: string): Promise<Channel> | undefined {
    return this.#expected.get(wayId)?.promise;
  }

  async #open(): Promise<Address> {
    const { address, publicHost, ports } = this.#parts;
    const { place } = address;
    if ("path" in place) {
      await this.#listen(address).catch(async (error: unknown) => {
        // The system reports a socket in a missing directory as forbidden.
        if (!["ENOENT", "EACCES"].includes(codeOf(error) ?? "")) throw error;
        // Cleaners of the temporary folder remove it while no host has a socket there.
        await makeUserDirectory(dirname(place.path));
        await this.#listen(address);
      });
      return address;
    }
    const listener = await (ports === undefined
      ? this.#listen(address)
      : this.#listenOnOne(address, place.host, ports));
    const { port } = listener.address as AddressInfo;
    return { ...address, place: { host: publicHost ?? place.host, port } };
  }

  #listen(address: Address): Promise<Listener> {
    const { death, network } = this.#parts;
    return listen({
      address,
      ...("path" in address.place ? {} : { network }),
      explain: death,
      onChannel: (channel, hello) => this.#enter(channel, hello),
    });
  }

  async #listenOnOne(
    address: Address,
    host: string,
    { first, last }: PortRange,
  ): Promise<Listener> {
    for (let port = first; port <= last; port++) {
      try {
        return await this.#listen({ ...address, place: { host, port } });
      } catch (error) {
        if (codeOf(error) !== "EADDRINUSE") throw error;
      }
    }
    const { hostId } = this.#parts;
    throw new RaySystemError(
      `host ${hostId} cannot be reached: no port from ${first} to ${last} (minWorkerPort, maxWorkerPort) is free on ${host}`,
    );
  }

  #enter(channel: Channel, { peerId, wayId }: Hello): void {
    // A host that dials itself has requested this channel, and is on its other end as well.
    const isOwn = peerId === this.#parts.hostId;
    const waiting = wayId === undefined || isOwn ? undefined : this.#expected.get(wayId);
    if (waiting === undefined) this.#parts.onChannel(peerId, channel);
    else waiting.resolve(channel);
  }
}
