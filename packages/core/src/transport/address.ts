/** Where somebody can be dialled, what opens it, and how this side takes part in a network of machines. */
import type { DeathCause } from "../shared/errors.ts";
import type { Credentials } from "./tls/credentials.ts";
import type { LinkTimes } from "./link/link.ts";

/** Where somebody listens: on this machine, or on any. */
export type Place = { readonly path: string } | { readonly host: string; readonly port: number };

/** Where a host listens, and what opens it. */
export interface Address {
  readonly place: Place;
  readonly token: string;
  /** Only TLS is spoken there. */
  readonly isSecure?: boolean;
}

/** How this side takes part in a network of machines: the times are those of links. */
export interface NetworkSettings extends LinkTimes {
  /** What it shows of itself where TLS is spoken. */
  readonly credentials?: Credentials;
}

export interface Hello {
  readonly peerId: string;
  /** The request that this connection answers, if the listener asked for it. */
  readonly wayId: string | undefined;
}

/** A connection on which nothing comes is probed by the system: after this, and every second from then on; the tenth that is not answered ends it. */
export const keepAlive: { readonly keepAlive: boolean; readonly keepAliveInitialDelay: number } = {
  keepAlive: true,
  keepAliveInitialDelay: 5000,
};

/** Of a connection under a link, which goes on over the next one. */
export const cutOff: DeathCause = { kind: "unreachable", message: "the connection was cut" };
