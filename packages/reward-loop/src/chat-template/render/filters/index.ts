/** The filters that are done here, by name. */

import { fail, unsupported } from "../../error.ts";
import { knows } from "../../parse/known-names.ts";
import { applyTest } from "../tests.ts";
import type { Arguments, Value } from "../../python/values.ts";
import type { Appliers, Filters } from "./filter.ts";
import { numberFilters } from "./numbers.ts";
import { sequenceFilters } from "./sequences.ts";
import { textFilters } from "./texts.ts";

const filters: Filters = { ...textFilters, ...numberFilters, ...sequenceFilters };
const apply: Appliers = { filter: applyFilter, test: applyTest };

export function applyFilter(name: string, value: Value, given: Arguments): Value {
  const filter = Object.hasOwn(filters, name) ? filters[name] : undefined;
  if (filter !== undefined) return filter(value, given, name, apply);
  return knows("filter", name)
    ? unsupported(`the filter ${name}`)
    : fail(`No filter named '${name}'`);
}
