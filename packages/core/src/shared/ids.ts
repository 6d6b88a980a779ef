/** Ids are nanoid's, with a prefix that says what they name; a short alphabet keeps them easy to read and to select. */
import { customAlphabet } from "nanoid";
import { threadSlot } from "./thread-slot.ts";

/** What makes them; a simulated world has its own, so that it is the same each time. */
interface IdSource {
  next: () => string;
}

const source: IdSource = threadSlot("ids", () => {
  const random = customAlphabet("0123456789abcdefghijklmnopqrstuvwxyz", 16);
  return { next: () => random() };
});

export type IdKind = "driver" | "host" | "actor" | "job" | "node" | "group" | "way" | "operator";

export function newId(kind: IdKind): string {
  return `${kind}-${source.next()}`;
}

/** Enough of an id to find it again. */
export function shortId(id: string): string {
  const [kind, rest] = id.split("-");
  return rest === undefined ? id : `${kind}-${rest.slice(0, 6)}`;
}
