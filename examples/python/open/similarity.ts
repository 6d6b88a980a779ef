/** How near answers are to reference answers, by embeddings that a model in Python has made. */

interface Matrix extends Float32Array {
  /** Rows and columns, as NumPy has them. */
  readonly shape: readonly [number, number];
}

export class Similarity {
  readonly #references: Matrix;

  /** @param references one row for each reference answer */
  constructor(references: Matrix) {
    this.#references = references;
    console.log(`${references.shape[0]} references of ${references.shape[1]} numbers`);
  }

  /** @returns for each row of `answers` the highest cosine, from -1 to 1 */
  score(answers: Matrix): Float32Array {
    const [count, width] = answers.shape;
    return Float32Array.from({ length: count }, (_, row) =>
      this.#highest(rowOf(answers, row, width)),
    );
  }

  /** Scores rows one by one, as they are asked for. */
  *stream(answers: Matrix): Generator<number> {
    const [count, width] = answers.shape;
    for (let row = 0; row < count; row += 1) yield this.#highest(rowOf(answers, row, width));
  }

  #highest(answer: Float32Array): number {
    const [count, width] = this.#references.shape;
    if (answer.length !== width) {
      throw new RangeError(`an answer has ${answer.length} numbers, and references have ${width}`);
    }
    const cosines = Array.from({ length: count }, (_, row) =>
      cosine(answer, rowOf(this.#references, row, width)),
    );
    return Math.max(...cosines);
  }
}

function rowOf(matrix: Float32Array, row: number, width: number): Float32Array {
  return matrix.subarray(row * width, (row + 1) * width);
}

function cosine(left: Float32Array, right: Float32Array): number {
  const dot = (one: Float32Array, other: Float32Array): number =>
    one.reduce((sum, number, index) => sum + number * (other[index] ?? 0), 0);
  return dot(left, right) / Math.sqrt(dot(left, left) * dot(right, right));
}
