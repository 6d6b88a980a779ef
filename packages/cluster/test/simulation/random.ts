/** Numbers that a seed decides (sfc32). */
export class Random {
  #a: number;
  #b: number;
  #c: number;
  #counter = 1;

  constructor(seed: number) {
    this.#a = seed >>> 0;
    this.#b = Math.floor(seed / 2 ** 32) ^ 0x9e3779b9;
    this.#c = 0x243f6a88;
    for (let round = 0; round < 12; round++) this.next();
  }

  /** In [0, 1). */
  next(): number {
    const sum = (this.#a + this.#b + this.#counter++) | 0;
    this.#a = this.#b ^ (this.#b >>> 9);
    this.#b = (this.#c + (this.#c << 3)) | 0;
    this.#c = (((this.#c << 21) | (this.#c >>> 11)) + sum) | 0;
    return (sum >>> 0) / 2 ** 32;
  }

  /** With both ends. */
  between(least: number, most: number): number {
    return least + this.next() * (most - least);
  }

  /** With both ends. */
  integer(least: number, most: number): number {
    return least + Math.floor(this.next() * (most - least + 1));
  }

  chance(probability: number): boolean {
    return this.next() < probability;
  }

  pick<T>(items: readonly T[]): T {
    return items[Math.floor(this.next() * items.length)] as T;
  }
}
