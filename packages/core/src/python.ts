/**
 * Values between Python and TypeScript, for the sister packages. This entry is internal and changes
 * with any release.
 */
export { decode, encode, mostDigits } from "./protocol/values/python-values.ts";
