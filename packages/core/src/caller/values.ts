/** Values and failures of one runtime as they travel, with the references inside them. */
import { Codec, type Encoded } from "../protocol/codec.ts";
import type { ErrorClasses, FailureData } from "../protocol/failure.ts";
import type { References } from "./references.ts";

export class Values {
  readonly codec: Codec;

  constructor(references: References, { findOrigin, findClass }: ErrorClasses) {
    this.codec = new Codec({
      isReference: (value) => references.isReference(value),
      write: (value) => references.write(value),
      read: (data) => references.read(data),
      decline: (data) => references.decline(data),
      findOrigin,
      findClass,
    });
  }

  /** Takes over the refs inside. A value that cannot be read fails where it is decoded. */
  claim(value: Encoded): void {
    try {
      this.codec.claim(value);
    } catch {
      // Nobody can tell what is inside.
    }
  }

  /** Nobody looks at a value that arrived: the refs inside are not ours. */
  decline(value: Encoded): void {
    try {
      this.codec.decline(value);
    } catch {
      // Nobody can tell what is inside.
    }
  }

  describe(thrown: unknown): FailureData {
    return this.codec.decodeFailure(this.codec.encodeFailure(thrown));
  }

  /** A failure that cannot be read is one itself. */
  readFailure(error: Encoded): FailureData {
    try {
      return this.codec.decodeFailure(error);
    } catch (unreadable) {
      return this.describe(unreadable);
    }
  }

  revive(failure: FailureData): Error {
    return this.codec.reviveFailure(failure);
  }
}
