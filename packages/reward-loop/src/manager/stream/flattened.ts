/**
 * The values of a stream of lists, one by one. A value that is there already costs one promise and
 * no turn of the list's source: `yield` in an async generator costs three for each value.
 */

export class Flattened<Value> implements AsyncGenerator<Value, void, undefined> {
  readonly #lists: AsyncGenerator<readonly Value[], void, undefined>;
  #list: readonly Value[] = [];
  #at = 0;
  /** Calls that wait for a list, or for one another; undefined: none. */
  #pending: Promise<unknown> | undefined;

  constructor(lists: AsyncGenerator<readonly Value[], void, undefined>) {
    this.#lists = lists;
  }

  next(): Promise<IteratorResult<Value, void>> {
    if (this.#pending === undefined && this.#at < this.#list.length) {
      return Promise.resolve(this.#taken());
    }
    return this.#inTurn(async () => {
      while (this.#at === this.#list.length) {
        const { done, value } = await this.#lists.next();
        if (done === true) return { done, value: undefined };
        this.#list = value;
        this.#at = 0;
      }
      return this.#taken();
    });
  }

  /** Leaves out what was not read, and ends the source. */
  return(): Promise<IteratorResult<Value, void>> {
    return this.#inTurn(async () => {
      this.#drop();
      await this.#lists.return();
      return { done: true, value: undefined };
    });
  }

  throw(error: unknown): Promise<IteratorResult<Value, void>> {
    return this.#inTurn(async () => {
      this.#drop();
      await this.#lists.throw(error);
      return { done: true, value: undefined };
    });
  }

  [Symbol.asyncIterator](): this {
    return this;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.return();
  }

  #taken(): IteratorResult<Value, void> {
    // It is within the list.
    const value = this.#list[this.#at] as Value;
    this.#at += 1;
    return { done: false, value };
  }

  #drop(): void {
    this.#list = [];
    this.#at = 0;
  }

  /** Calls are served in order, each also where the one before rejects. */
  #inTurn<Result>(work: () => Promise<Result>): Promise<Result> {
    const before = this.#pending;
    const result = before === undefined ? work() : before.then(work, work);
    this.#pending = result;
    const over = (): void => {
      if (this.#pending === result) this.#pending = undefined;
    };
    result.then(over, over);
    return result;
  }
}
