/**
 * The parameters in the URL of a path that scores. They say how a response is read, so one that
 * the path does not have, or with another value than it has, is refused: taken for none, a misspelt
 * one would give zeros.
 */

import { HttpRefusal } from "@rayling/core/http";

export interface QueryParameter {
  readonly description: string;
  /** All values that it may have; undefined: any text that is not empty. */
  readonly values?: readonly string[];
}

/** The parameters of a path, by their names. */
export type QueryParameters = Readonly<Record<string, QueryParameter>>;

/** The values that a request has, by the names of their parameters. */
export type Query = Readonly<Partial<Record<string, string>>>;

/** Throws HttpRefusal 422, which names the first parameter that is wrong. */
export function queryOf(url: string, known: QueryParameters): Query {
  const { pathname, searchParams } = new URL(url);
  const query: Record<string, string> = {};
  for (const [name, value] of searchParams) {
    const parameter = Object.hasOwn(known, name) ? known[name] : undefined;
    if (parameter === undefined) {
      const names = Object.keys(known);
      const all = names.length === 0 ? "none" : names.join(" and ");
      throw refused(name, `${pathname} has no such parameter in its URL; it has ${all}`);
    }
    if (Object.hasOwn(query, name)) throw refused(name, "the URL has it more than once");
    if (value === "") throw refused(name, "it is empty in the URL: leave it out, or give a value");
    if (parameter.values?.includes(value) === false) {
      const values = parameter.values.join(" or ");
      throw refused(name, `it is ${JSON.stringify(value)} in the URL, and must be ${values}`);
    }
    query[name] = value;
  }
  return query;
}

function refused(name: string, problem: string): HttpRefusal {
  return new HttpRefusal(422, "invalid_request", `?${name}: ${problem}`);
}
