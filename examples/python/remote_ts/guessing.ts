/** An environment for agents: guess the number. */

export interface Step {
  readonly observation: "higher" | "lower" | "right";
  readonly reward: number;
  readonly done: boolean;
}

export class Guessing {
  readonly #highest: number;
  #secret = 0;
  #steps = 0;

  constructor(highest: number) {
    this.#highest = highest;
  }

  reset({ seed }: { seed: number }): string {
    this.#secret = 1 + ((seed * 7919) % this.#highest);
    this.#steps = 0;
    return `a number from 1 to ${this.#highest}`;
  }

  step(guess: number): Step {
    if (!Number.isInteger(guess)) throw new TypeError(`a guess is an integer, not ${guess}`);
    this.#steps += 1;
    if (guess === this.#secret) {
      return { observation: "right", reward: 1 / this.#steps, done: true };
    }
    return { observation: guess < this.#secret ? "higher" : "lower", reward: 0, done: false };
  }

  /** The numbers that an agent would guess that halves what is left. */
  async *solution(): AsyncGenerator<number> {
    let [low, high] = [1, this.#highest];
    while (low <= high) {
      const guess = Math.floor((low + high) / 2);
      yield guess;
      if (guess === this.#secret) return;
      if (guess < this.#secret) low = guess + 1;
      else high = guess - 1;
    }
  }

  crash(): void {
    process.exit(1);
  }
}
