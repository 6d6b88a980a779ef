/**
 * Ids are nanoid's, with a prefix that says what they name. A short alphabet keeps them easy to
 * read and to select.
 */
import { customAlphabet } from "nanoid";
import { threadSlot } from "./thread-slot.ts";

/** The source of ids. A simulated world replaces it, so that its ids are the same on each run. */
interface IdSource {
  next: () => string;
}

const source: IdSource = threadSlot("ids", () => {
  const random = customAlphabet("0123456789abcdefghijklmnopqrstuvwxyz", 16);
  return { next: () => random() };
});

export type IdKind =
  | "driver"
  | "host"
  | "actor"
  | "job"
  | "node"
  | "group"
  | "way"
  | "operator"
  | "lease";

export function newId(kind: IdKind): string {
  return `${kind}-${source.next()}`;
}

/** Returns enough of an id for people to find it again. */
export function shortId(id: string): string {
  const [kind, rest] = id.split("-");
  return rest === undefined ? id : `${kind}-${rest.slice(0, 6)}`;
}
