/** The port of a server that listens for the network. */
import type { Server } from "node:net";

/** @throws TypeError for a server that does not listen, or at a path */
export function portOf(server: Server): number {
  const address = server.address();
  if (typeof address === "object" && address !== null) return address.port;
  throw new TypeError("the server has no port");
}
