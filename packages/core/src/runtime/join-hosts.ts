/**
 * Introduces two hosts to each other: a port between threads, else a connection to the door of one that has one: of the one on another machine, or of the
 * one that is a process.
 *
 * The answer is for the one that asked; the other one is told what it has to do, and has done it when the asker must only wait.
 */
import { MessageChannel } from "node:worker_threads";
import { transfer } from "comlink";
import type { Way } from "../host/control.ts";
import type { Host } from "./host.ts";

export async function joinHosts(from: Host, to: Host, wayId: string): Promise<Way> {
  const isRemote = from.isRemote === true;
  if (to.isRemote === true || (to.isolation === "process" && !isRemote)) {
    return { kind: "dial", address: await to.control((control) => control.address()) };
  }
  if (isRemote || from.isolation === "process") {
    const address = await from.control((control) => control.address());
    await to.control((control) => control.accept(from.id, { kind: "dial", address }, wayId));
    return { kind: "incoming" };
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
