/**
 * Refuses JSON for values that stand for something elsewhere: JSON would silently make an empty
 * object of them.
 */
export function refuseJson(prototype: object, what: string): void {
  Object.defineProperty(prototype, "toJSON", {
    configurable: true,
    value(): never {
      throw new TypeError(`${what} has no JSON`);
    },
  });
}
