/**
 * Introduces two hosts to each other: a port between threads, else a connection to the door of one that has one: of the one on another machine, or of the
 * one that is a process. An address of the loopback leads nowhere from another machine: the one that has such an address dials the other.
 *
 * The answer is for the one that asked; the other one is told what it has to do, and has done it when the asker must only wait.
 */
import { MessageChannel } from "node:worker_threads";
import { transfer } from "comlink";
import type { Way } from "../../host/control.ts";
import type { Address } from "../../transport/address.ts";
import type { Host } from "../launch/host.ts";

export async function joinHosts(from: Host, to: Host, wayId: string): Promise<Way> {
  const isRemote = from.isRemote === true;
  if (to.isRemote === true || (to.isolation === "process" && !isRemote)) {
    const address = await addressOf(to);
    if (!isRemote || !isLoopback(address)) return { kind: "dial", address };
    // The driver reaches it by the loopback: it is on the driver's machine, from which the other one is reached, if it is elsewhere.
    const other = await addressOf(from);
    return isLoopback(other) ? { kind: "dial", address } : dialFrom(to, from, other, wayId);
  }
  if (isRemote || from.isolation === "process") {
    return dialFrom(to, from, await addressOf(from), wayId);
  }
  const { port1, port2 } = new MessageChannel();
  const way: Way = { kind: "port", port: port1 };
  // What is sent to a host that ends before it has heard of the way would be lost, and nobody could say that it never began.
  try {
    await to.control((control) => control.accept(from.id, transfer(way, [port1]), wayId));
  } catch (error) {
    port2.close();
    throw error;
  }
  return transfer({ kind: "port", port: port2 }, [port2]);
}

/** The one that asked waits for the other. */
async function dialFrom(to: Host, from: Host, address: Address, wayId: string): Promise<Way> {
  await to.control((control) => control.accept(from.id, { kind: "dial", address }, wayId));
  return { kind: "incoming" };
}

function addressOf(host: Host): Promise<Address> {
  return host.control((control) => control.address());
}

/** By which nobody is reached but from its own machine. */
function isLoopback({ place }: Address): boolean {
  if (!("host" in place)) return true;
  const name = place.host.replace(/^::ffff:/i, "");
  return name === "localhost" || name === "::1" || /^127\.\d+\.\d+\.\d+$/.test(name);
}
