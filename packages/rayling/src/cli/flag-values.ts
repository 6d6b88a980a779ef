/** Values of flags that several commands have, and what is said of wrong ones. */
import { InvalidArgumentError } from "commander";

export function count(least: number): (text: string) => number {
  return (text) => {
    // setTimeout's longest and a 32-bit seed alike.
    if (/^\d+$/.test(text) && Number(text) >= least && Number(text) < 2 ** 31) return Number(text);
    throw new InvalidArgumentError(`It must be a whole number of at least ${least}.`);
  };
}
