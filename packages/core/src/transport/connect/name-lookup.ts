/**
 * Finds the addresses of names, once at a time for each name.
 *
 * A look-up cannot be given up, and holds one of the few threads in which libuv makes them until
 * the name server answers. Attempts to reach a peer therefore join the look-up of its name that is
 * under way: another one would only keep look-ups of other names waiting.
 */
import dns from "node:dns";
import type { LookupFunction } from "node:net";

type Callback = Parameters<LookupFunction>[2];

/** The callbacks of each look-up that is under way, by its name and options. */
const underWay: Map<string, Callback[]> = new Map();

/** The option `lookup` of connections. */
export const joinedLookup: LookupFunction = (name, options, callback) => {
  const key = `${name} ${JSON.stringify(options)}`;
  const joined = underWay.get(key);
  if (joined !== undefined) {
    joined.push(callback);
    return;
  }
  const callbacks = [callback];
  underWay.set(key, callbacks);
  dns.lookup(name, options, (error, address, family) => {
    underWay.delete(key);
    for (const one of callbacks) one(error, address, family);
  });
};

/** Whether a look-up of the name is under way. */
export function isLookingUp(name: string): boolean {
  return [...underWay.keys()].some((key) => key.startsWith(`${name} `));
}
