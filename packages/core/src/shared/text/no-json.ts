/** What stands for something elsewhere is no data: JSON would make an empty object of it, and nobody would notice. */
export function refuseJson(prototype: object, what: string): void {
  Object.defineProperty(prototype, "toJSON", {
    configurable: true,
    value(): never {
      throw new TypeError(`${what} has no JSON`);
    },
  });
}
