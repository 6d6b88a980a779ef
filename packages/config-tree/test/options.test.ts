/** A table of options: what it reads, and what is made of it. */

import { describe, expect, test } from "vitest";
import { parse } from "yaml";
import { z } from "zod";
import {
  defaultsOf,
  nested,
  option,
  optionsFile,
  optionsOf,
  optionsPage,
  optionsSchema,
  readOptions,
} from "@rayling/config-tree/options";

const table = z.strictObject({
  portNumber: option(z.number().int().min(0).max(9), 8, "Where it listens."),
  log: nested({
    file: option(z.string().nullable(), null, "null: nowhere."),
    levels: option(z.array(z.enum(["warn", "error"])), ["warn"], "Which of them | these."),
    copy: option(z.boolean(), "${log.file}", ""),
  }),
  free: option(z.record(z.string(), z.unknown()), {}, "Of others."),
});
const snake = (key: string): string =>
  key.replaceAll(/[A-Z]/g, (letter) => `_${letter.toLowerCase()}`);

describe("a table", () => {
  test("has entries by the names of files, with what may stand there in words", () => {
    expect(optionsOf(table, snake)).toEqual([
      {
        key: "port_number",
        type: "a whole number of at least 0 and of at most 9",
        default: 8,
        help: "Where it listens.",
      },
      { key: "log.file", type: "a text, or null", default: null, help: "null: nowhere." },
      {
        key: "log.levels",
        type: "a list of: warn, error",
        default: ["warn"],
        help: "Which of them | these.",
      },
      { key: "log.copy", type: "true or false", default: "${log.file}", help: "" },
      { key: "free", type: "keys", default: {}, help: "Of others." },
    ]);
  });

  test("fills in what is missing, and refuses what may not stand there", () => {
    expect(readOptions(table, { log: { copy: true } })).toEqual({
      portNumber: 8,
      log: { file: null, levels: ["warn"], copy: true },
      free: {},
    });
  });

  test.each<[string, object, string, string | undefined]>([
    [
      "port_number: is 10: must be a whole number of at least 0 and of at most 9",
      { portNumber: 10 },
      "port_number",
      undefined,
    ],
    [
      "port_number: is NaN: must be a whole number of at least 0 and of at most 9",
      { portNumber: Number.NaN },
      "port_number",
      undefined,
    ],
    ["log.file: is 5: must be a text, or null", { log: { file: 5 } }, "log.file", undefined],
    [
      'log.levels.1: is "eror": must be one of warn, error; did you mean error?',
      { log: { levels: ["warn", "eror"] } },
      "log.levels.1",
      "error",
    ],
    ["log: is 3: must be keys", { log: 3 }, "log", undefined],
    [
      "log.fiel: there is no such key; did you mean log.file?",
      { log: { fiel: 1 } },
      "log.fiel",
      "log.file",
    ],
  ])("%s", (message, keys, key, nearest) => {
    const log = { copy: true, ...(keys as { log?: object }).log };
    const given = typeof (keys as { log?: unknown }).log === "number" ? keys : { ...keys, log };
    expect(() => readOptions(table, given, { name: snake })).toThrow(
      expect.objectContaining({ code: "CONFIG", message, key, nearest }) as Error,
    );
  });

  test("says of one of several things what is wrong with the one that got furthest, in front of it where it stands", () => {
    const either = z.strictObject({ one: z.union([z.enum(["auto"]), z.array(z.string().min(1))]) });
    const messageOf = (one: unknown): string => {
      try {
        readOptions(either, { one }, { prefix: "all." });
        return "";
      } catch (error) {
        return (error as Error).message;
      }
    };
    expect(messageOf("aut")).toBe(
      'all.one: is "aut": must be auto, or a list of: a text; did you mean auto?',
    );
    expect(messageOf(["a", ""])).toBe('all.one.1: is "": must not be empty');
    expect(messageOf(["a", "b"])).toBe("");
  });

  test("is a file with comments that reads as its defaults", () => {
    const text = optionsFile(table, "All of it.", snake);
    expect(text).toMatchInlineSnapshot(`
      "# All of it.

      # Where it listens.
      port_number: 8
      log:
        # null: nowhere.
        file: null
        # Which of them | these.
        levels:
          - warn
        copy: \${log.file}
      # Of others.
      free: {}
      "
    `);
    expect(parse(text)).toEqual(defaultsOf(table, snake));
  });

  test("is a page, whose cells hold", () => {
    expect(optionsPage(optionsOf(table))).toContain(
      '| `log.levels` | a list of: warn, error | `["warn"]` | Which of them \\| these. |',
    );
  });

  test("is a schema, in which references may stand anywhere and nothing is needed", () => {
    expect(optionsSchema(table, snake)).toMatchInlineSnapshot(`
      {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "additionalProperties": false,
        "properties": {
          "free": {
            "anyOf": [
              {
                "additionalProperties": {},
                "propertyNames": {
                  "type": "string",
                },
                "type": "object",
              },
              {
                "pattern": "\\$\\{",
                "type": "string",
              },
            ],
            "default": {},
            "description": "Of others.",
          },
          "log": {
            "additionalProperties": false,
            "default": {},
            "properties": {
              "copy": {
                "anyOf": [
                  {
                    "type": "boolean",
                  },
                  {
                    "pattern": "\\$\\{",
                    "type": "string",
                  },
                ],
                "default": "\${log.file}",
                "description": "",
              },
              "file": {
                "anyOf": [
                  {
                    "type": [
                      "string",
                      "null",
                    ],
                  },
                  {
                    "pattern": "\\$\\{",
                    "type": "string",
                  },
                ],
                "default": null,
                "description": "null: nowhere.",
              },
              "levels": {
                "anyOf": [
                  {
                    "items": {
                      "enum": [
                        "warn",
                        "error",
                      ],
                      "type": "string",
                    },
                    "type": "array",
                  },
                  {
                    "pattern": "\\$\\{",
                    "type": "string",
                  },
                ],
                "default": [
                  "warn",
                ],
                "description": "Which of them | these.",
              },
            },
            "type": "object",
          },
          "port_number": {
            "anyOf": [
              {
                "maximum": 9,
                "minimum": 0,
                "type": "integer",
              },
              {
                "pattern": "\\$\\{",
                "type": "string",
              },
            ],
            "default": 8,
            "description": "Where it listens.",
          },
        },
        "type": "object",
      }
    `);
  });
});
