/**
 * Addresses of listeners, the tokens that open them, and the settings of this side in a network of
 * machines.
 */
import type { DeathCause } from "../shared/errors.ts";
import type { Credentials } from "./tls/credentials.ts";
import type { LinkTimes } from "./link/link.ts";

/** The place of a listener: a path of this machine, or a port of any machine. */
export type Place = { readonly path: string } | { readonly host: string; readonly port: number };

/** The place of a listener, and the token that opens it. */
export interface Address {
  readonly place: Place;
  readonly token: string;
  /** Whether the listener speaks only TLS. */
  readonly isSecure?: boolean;
}

/** The settings of this side in a network of machines; the times are those of links. */
export interface NetworkSettings extends LinkTimes {
  /** The credentials that this side shows under TLS. */
  readonly credentials?: Credentials;
}

export interface Hello {
  readonly peerId: string;
  /** The request that this connection answers, if the listener asked for it. */
  readonly wayId: string | undefined;
}

/**
 * The system probes an idle connection after this delay in ms, and every second from then on; the
 * tenth unanswered probe ends it.
 */
export const keepAlive: { readonly keepAlive: boolean; readonly keepAliveInitialDelay: number } = {
  keepAlive: true,
  keepAliveInitialDelay: 5000,
};

/** The cause of a connection under a link that was cut; the link goes on over the next one. */
export const cutOff: DeathCause = { kind: "unreachable", message: "the connection was cut" };
