/**
 * numpy's legacy random numbers (`np.random.seed`, `np.random.choice`): the Mersenne Twister
 * MT19937 of Matsumoto and Nishimura, 1998. Bootstraps are verl's only if they draw the same rows.
 */

const size = 624;
const middle = 397;

export interface Mt19937 {
  /** The next 32 bits. */
  next(): number;
  /**
   * Draws a number from 0 to below `count`: takes as many bits as `count` needs and draws again
   * while the number is too large. Draws nothing if `count` is 1.
   */
  below(count: number): number;
}

export function createMt19937(seed: number): Mt19937 {
  const state = new Uint32Array(size);
  state[0] = seed;
  for (let at = 1; at < size; at++) {
    const last = state[at - 1] ?? NaN;
    state[at] = Math.imul(1_812_433_253, last ^ (last >>> 30)) + at;
  }
  let used = size;
  const next = (): number => {
    if (used === size) {
      twist(state);
      used = 0;
    }
    let drawn = state[used++] ?? NaN;
    drawn ^= drawn >>> 11;
    drawn ^= (drawn << 7) & 0x9d2c5680;
    drawn ^= (drawn << 15) & 0xefc60000;
    return (drawn ^ (drawn >>> 18)) >>> 0;
  };
  return {
    next,
    below(count) {
      if (count <= 1) return 0;
      const mask = 0xffffffff >>> Math.clz32(count - 1);
      for (;;) {
        const drawn = (next() & mask) >>> 0;
        if (drawn < count) return drawn;
      }
    },
  };
}

function twist(state: Uint32Array): void {
  for (let at = 0; at < size; at++) {
    const bits = ((state[at] ?? NaN) & 0x80000000) | ((state[(at + 1) % size] ?? NaN) & 0x7fffffff);
    const far = state[(at + middle) % size] ?? NaN;
    state[at] = far ^ (bits >>> 1) ^ ((bits & 1) === 0 ? 0 : 0x9908b0df);
  }
}
