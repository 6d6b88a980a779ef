/** The interface as an OpenAPI 3.1 document and as a page, made of the table of routes. */

import { htmlPage, section, table } from "@rayling/reward-loop/page";
import { z } from "zod";
import { routes } from "./routes.ts";
import type { Route } from "./routes.ts";

const errorSchema = z.object({
  error: z.object({
    message: z.string(),
    type: z.string(),
    param: z.null(),
    code: z.string(),
  }),
});

/** @param version of the package */
export function openApi(version: string): object {
  const paths = Object.groupBy(routes, ({ path }) => path);
  return {
    openapi: "3.1.0",
    info: {
      title: "rayling serve",
      version,
      description: "Scores responses of a model with reward functions in TypeScript.",
    },
    components: {
      securitySchemes: { token: { type: "http", scheme: "bearer" } },
      schemas: { Error: z.toJSONSchema(errorSchema) },
    },
    security: [{ token: [] }],
    paths: Object.fromEntries(
      Object.entries(paths).map(([path, of = []]) => [
        path,
        Object.fromEntries(of.map((route) => [route.method.toLowerCase(), operationOf(route)])),
      ]),
    ),
  };
}

function operationOf(route: Route): unknown {
  const { summary, description, request, response, isScoring } = route;
  const refusal = {
    description: "Refused: error.code says why",
    content: { "application/json": { schema: { $ref: "#/components/schemas/Error" } } },
  };
  const content =
    response === undefined
      ? {}
      : { content: { "application/json": { schema: jsonSchema(response) } } };
  return {
    summary,
    ...(description === undefined ? {} : { description }),
    ...(isScoring === true ? { parameters: [keyParameter, ...parametersOf(route)] } : {}),
    ...(request === undefined
      ? {}
      : {
          requestBody: {
            required: true,
            content: { "application/json": { schema: jsonSchema(request) } },
          },
        }),
    responses: { 200: { description: "As it is", ...content }, default: refusal },
  };
}

const keyParameter = {
  name: "Idempotency-Key",
  in: "header",
  required: false,
  schema: { type: "string", maxLength: 256 },
};

function parametersOf({ query = {} }: Route): readonly object[] {
  return Object.entries(query).map(([name, { description, values }]) => ({
    name,
    in: "query",
    required: false,
    description,
    schema: { type: "string", ...(values === undefined ? { minLength: 1 } : { enum: values }) },
  }));
}

function jsonSchema(schema: z.ZodType): unknown {
  const { $schema: _, ...rest } = z.toJSONSchema(schema, { io: "input" });
  return rest;
}

/** @param version of the package */
export function interfacePage(version: string): string {
  return htmlPage({
    title: "rayling serve",
    subtitle: `Version ${version}. The same for programs: /openapi.json`,
    sections: [
      section(
        "Paths",
        table(
          ["", "", "", ""],
          routes.map((route) => [route.method, route.path, route.summary, descriptionOf(route)]),
        ),
      ),
    ],
  });
}

/** Returns the description with a sentence for each parameter. */
function descriptionOf({ description, query = {} }: Route): string {
  const parameters = Object.entries(query).map(
    ([name, { description: text, values }]) => `?${name}=${values?.join("|") ?? "<text>"}: ${text}`,
  );
  return [description ?? "", ...parameters].join(" ").trim();
}
