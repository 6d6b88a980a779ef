/** Every HTTP server of the packages is the one endpoint with the one guard, and stands in the table of the battery that attacks them all. */
import { expect, test } from "vitest";
import { endpoints } from "../fixtures/http-endpoints.ts";
import { sourceFiles } from "./source.ts";

const owner = "packages/core/src/transport/http/endpoint.ts";

const files = sourceFiles("packages/*/src/**/*.ts");

/** Names that a file takes from a module as values. */
function valuesOf(text: string, module: RegExp): string[] {
  const found = text.matchAll(
    new RegExp(
      `import (?!type)([^;]*?) from "${module.source}"|(import)\\("${module.source}"\\)`,
      "g",
    ),
  );
  return [...found].flatMap(([, names = "everything"]) =>
    names
      .replaceAll(/[{}]/g, "")
      .split(",")
      .map((name) => name.trim())
      .filter((name) => name !== "" && !name.startsWith("type ")),
  );
}

/** A client's part of the modules. */
const asks = /^request(?: as \w+)?$/;

test("nobody makes a server of HTTP but the endpoint with the guard", () => {
  const makers = files
    .filter(({ text }) => valuesOf(text, /(?:node:)?https?2?/).some((name) => !asks.test(name)))
    .map(({ path }) => path);
  expect(makers).toEqual([owner]);
});

test("every file that listens by it is in the table of endpoints", () => {
  const listening = files
    .filter(({ path, text }) => path !== owner && /\b(?:Http)?Endpoint\.listen\(/.test(text))
    .map(({ path }) => path);
  expect(listening).toEqual(endpoints.map(({ file }) => file).toSorted());
});
