/** Keyword arguments of Python. */

/** Keyword arguments, made by `keywords`. */
export class Keywords {
  /** The arguments by name. */
  readonly values: Readonly<Record<string, unknown>>;
  constructor(values: Readonly<Record<string, unknown>>) {
    this.values = values;
  }
}

/** Returns keyword arguments for the end of a call: `actor.add.remote(1, keywords({ by: 2 }))`. */
export function keywords(values: Readonly<Record<string, unknown>>): Keywords {
  return new Keywords(values);
}
