/** The base of the runtime's errors: one `instanceof` tells them from the user's, and `code` tells them apart. */
export class RayError extends Error {
  readonly code: string;
  constructor(code: string, message: string, options?: ErrorOptions) {
    super(message, options);
    this.name = new.target.name;
    this.code = code;
  }
}
