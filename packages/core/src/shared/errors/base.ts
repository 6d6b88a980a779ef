/**
 * The base class of the runtime's errors. One `instanceof` separates them from the user's errors,
 * and `code` separates them from each other.
 */
export class RayError extends Error {
  /** Identifies the kind of error. */
  readonly code: string;
  constructor(code: string, message: string, options?: ErrorOptions) {
    super(message, options);
    this.name = new.target.name;
    this.code = code;
  }
}
