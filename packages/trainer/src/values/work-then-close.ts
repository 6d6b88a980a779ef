/** Work on something that is to be closed, and which failure of the two a caller sees. */

/**
 * Returns what `work` returns, after `closing` is closed. Rejects with the first failure: a disk
 * that is full lets the work fail, and the closing, too, and `await using` would make a
 * SuppressedError of both, whose message names neither.
 */
export async function workThenClose<Result>(
  closing: { close(): Promise<void> },
  work: () => Promise<Result>,
): Promise<Result> {
  let result: Result;
  try {
    result = await work();
  } catch (error) {
    await closing.close().catch(() => undefined);
    throw error;
  }
  await closing.close();
  return result;
}
