/** Results of promises in the order in which they resolve, those of one moment together. */

/** Throws what the first one rejects with. */
export async function* asTheyEnd<Value>(
  promises: readonly Promise<Value>[],
): AsyncGenerator<Value[], void, undefined> {
  let ended: Value[] = [];
  let failure: { readonly error: unknown } | undefined;
  let news = Promise.withResolvers<void>();
  for (const promise of promises) {
    promise.then(
      (value) => {
        ended.push(value);
        news.resolve();
      },
      (error: unknown) => {
        failure ??= { error };
        news.resolve();
      },
    );
  }
  for (let left = promises.length; left > 0;) {
    await news.promise;
    news = Promise.withResolvers();
    if (failure !== undefined) throw failure.error;
    const values = ended;
    ended = [];
    left -= values.length;
    yield values;
  }
}
