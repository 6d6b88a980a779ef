/** The control words of a link: a byte that says which, and the count of received batches. */
import { RaySystemError } from "../../shared/errors.ts";

const codes = { received: 1, goodbye: 2, ask: 3 } as const;

/** The link ends: this side has closed it. */
export function goodbyeWord(): Uint8Array {
  return Uint8Array.of(codes.goodbye);
}

/** Asks the peer to send a word. */
export function askWord(): Uint8Array {
  return Uint8Array.of(codes.ask);
}

/** That many batches have arrived. */
export function receivedWord(count: number): Uint8Array {
  const word = Buffer.allocUnsafe(7);
  word[0] = codes.received;
  word.writeUIntLE(count, 1, 6);
  return word;
}

/** A control word from the peer: a name, or the number of batches that the peer has. */
export type Word = "goodbye" | "ask" | number;

/** @throws RaySystemError on an unknown word */
export function readWord(word: Uint8Array): Word {
  const [code] = word;
  if (code === codes.ask && word.length === 1) return "ask";
  if (code === codes.goodbye && word.length === 1) return "goodbye";
  if (code === codes.received && word.length === 7) return Buffer.from(word).readUIntLE(1, 6);
  throw new RaySystemError("unknown control word from peer");
}
