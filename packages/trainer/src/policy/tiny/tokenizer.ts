/** Tokens: one for each character of an alphabet, and two more: 0 pads rows, 1 ends a sequence. */

import { TrainerInputError } from "../../errors.ts";
import type { ChatMessage } from "../policy.ts";

export const padTokenId = 0;
export const eosTokenId = 1;
const firstCharacterId = 2;

export class CharTokenizer {
  readonly #characters: readonly string[];
  readonly #ids: ReadonlyMap<string, number>;
  readonly #separator: string;

  /** @param separator what stands between the messages of a prompt */
  constructor({
    alphabet,
    separator = "",
  }: {
    readonly alphabet: string;
    readonly separator?: string;
  }) {
    this.#characters = Array.from(alphabet);
    this.#ids = new Map(this.#characters.map((one, i) => [one, i + firstCharacterId]));
    this.#separator = separator;
  }

  get vocabularySize(): number {
    return this.#characters.length + firstCharacterId;
  }

  /** @throws TrainerInputError for a character that the alphabet lacks */
  encode(text: string): Int32Array {
    return Int32Array.from(text, (character) => {
      const id = this.#ids.get(character);
      if (id !== undefined) return id;
      throw new TrainerInputError(
        "alphabet",
        `the alphabet lacks ${JSON.stringify(character)}, which stands in ${JSON.stringify(text)}`,
      );
    });
  }

  /**
   * A prompt is the contents of its messages, one after the other; their roles are not read.
   * @throws TrainerInputError also for one without a character, and for contents of parts
   */
  encodeMessages(messages: readonly ChatMessage[]): Int32Array {
    const texts = messages.map(({ content }) => {
      if (typeof content === "string") return content;
      throw new TrainerInputError(
        "prompts",
        "a message has parts, as images: this policy reads texts alone",
      );
    });
    const ids = this.encode(texts.join(this.#separator));
    if (ids.length === 0) {
      throw new TrainerInputError("prompts", "a prompt must have at least one character");
    }
    return ids;
  }

  /** Without special tokens. */
  decode(ids: Iterable<number>): string {
    return Array.from(ids, (id) => this.#characters[id - firstCharacterId] ?? "").join("");
  }
}
