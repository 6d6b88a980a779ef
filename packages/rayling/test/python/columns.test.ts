import { expect, test } from "vitest";
import { Columns } from "../../src/python/columns.ts";

const begun = (columns: Columns, samples: number): Columns => {
  for (let sample = 0; sample < samples; sample++) columns.begin();
  return columns;
};

test("a row has a null for each key that an earlier row had", () => {
  const columns = begun(new Columns(undefined, false), 3);
  expect(columns.scored({ a: 1 })).toEqual({ a: 1 });
  expect(columns.scored({ b: 2 })).toEqual({ a: null, b: 2 });
  columns.failed({ b: 3, c: 4 }, (row) => expect(row).toEqual({ a: null, b: 3 }));
  expect.assertions(3);
});

test("named columns are those of every row", () => {
  const columns = begun(new Columns(["a", "b"], true), 2);
  expect(columns.scored({ a: 1, c: 2 })).toEqual({ a: 1, b: null });
  columns.failed({}, (row) => expect(row).toEqual({ a: null, b: null }));
  expect.assertions(2);
});

test("a sample without a score waits for the first columns", () => {
  const columns = begun(new Columns(undefined, true), 3);
  const answers: unknown[] = [];
  columns.failed({}, (row) => answers.push(row));
  expect(answers).toEqual([]);
  columns.scored({ a: 1 });
  expect(answers).toEqual([{ a: null }]);
});

test("it waits no longer than anything else is under way", () => {
  const columns = begun(new Columns(undefined, true), 2);
  const answers: unknown[] = [];
  columns.failed({}, (row) => answers.push(row));
  columns.failed({}, (row) => answers.push(row));
  expect(answers).toEqual([{}, {}]);
});

test("it waits for nothing where it ends its batch", () => {
  const columns = begun(new Columns(undefined, false), 2);
  columns.failed({}, (row) => expect(row).toEqual({}));
  expect.assertions(1);
});
