/**
 * Extra info in columns: verl wants the same keys from every row of a batch. A row gets null for
 * each key that an earlier row has had and it has not.
 *
 * A sample that could not be scored has no keys of its own. Where none is known yet, it waits for
 * the first row that has some, or until nothing else is under way.
 */

type Info = Readonly<Record<string, unknown>>;

export class Columns {
  readonly #known: Set<string>;
  /** Whether rows have these keys and no others. */
  readonly #isFixed: boolean;
  readonly #holds: boolean;
  readonly #held: (() => void)[] = [];
  #underWay = 0;

  /**
   * @param names of all columns; undefined: they are learned from the rows
   * @param holds whether a sample without a score waits for the columns
   */
  constructor(names: readonly string[] | undefined, holds: boolean) {
    this.#known = new Set(names);
    this.#isFixed = names !== undefined;
    this.#holds = holds && !this.#isFixed;
  }

  /** A sample is being scored. */
  begin(): void {
    this.#underWay++;
  }

  /** It has these extras. Returns them with a value for each column. */
  scored(info: Info): Info {
    if (!this.#isFixed) for (const key of Object.keys(info)) this.#known.add(key);
    const row = this.#filled(info);
    this.#end();
    return row;
  }

  /** It has no score. Calls `answer` when it is known which columns there are. */
  failed(info: Info, answer: (row: Info) => void): void {
    this.#held.push(() => answer(this.#filled(info)));
    this.#end();
  }

  #end(): void {
    this.#underWay--;
    if (this.#holds && this.#known.size === 0 && this.#underWay > 0) return;
    for (const answer of this.#held.splice(0)) answer();
  }

  #filled(info: Info): Info {
    const row: Record<string, unknown> = {};
    for (const key of this.#known) row[key] = info[key] ?? null;
    return row;
  }
}
