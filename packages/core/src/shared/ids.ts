/** Ids are nanoid's, with a prefix that says what they name; a short alphabet keeps them easy to read and to select. */
import { customAlphabet } from "nanoid";

const random: (size?: number) => string = customAlphabet(
  "0123456789abcdefghijklmnopqrstuvwxyz",
  16,
);

export type IdKind = "driver" | "host" | "actor" | "job" | "node" | "group" | "way" | "operator";

export function newId(kind: IdKind): string {
  return `${kind}-${random()}`;
}

/** Enough of an id to find it again. */
export function shortId(id: string): string {
  const [kind, rest] = id.split("-");
  return rest === undefined ? id : `${kind}-${rest.slice(0, 6)}`;
}
