/** From the bytes of a request to a value of its schema; what is wrong is told with its place. */

import { HttpRefusal } from "@rayling/core/http";
import { jsonValue } from "@rayling/data-proto";
import type { z } from "zod";

/** Throws HttpRefusal 415: a body that is packed looks like one in another encoding. */
export function refusePacked(encoding: string | undefined): void {
  if (encoding === undefined || encoding.trim().toLowerCase() === "identity") return;
  const problem = `a body in the encoding ${JSON.stringify(encoding)} is not read: send it as it is`;
  throw new HttpRefusal(415, "unsupported_encoding", problem);
}

/** Whole numbers that a double cannot hold are bigints. Throws HttpRefusal 400. */
export function jsonOf(body: Uint8Array): unknown {
  if (body.length === 0) {
    throw new HttpRefusal(400, "malformed_json", "the body is empty: it must be JSON");
  }
  try {
    return jsonValue(decoder.decode(body));
  } catch (error) {
    const problem = `the body is no JSON in UTF-8: ${String(error)}`;
    throw new HttpRefusal(400, "malformed_json", problem);
  }
}

const decoder = new TextDecoder("utf-8", { fatal: true });

/** Throws HttpRefusal 422, which names the first place that is wrong. */
export function checked<Schema extends z.ZodType>(
  schema: Schema,
  value: unknown,
): z.output<Schema> {
  const { data, error } = schema.safeParse(value);
  if (error === undefined) return data;
  const [issue] = error.issues;
  const place = placeOf(issue?.path ?? []);
  throw new HttpRefusal(
    422,
    "invalid_request",
    `${place === "" ? "the body" : place}: ${issue?.message ?? "it is not what it should be"}`,
  );
}

/** Returns the fields of an object, and none of anything else. */
export function fieldsOf(value: unknown): Readonly<Record<string, unknown>> {
  return typeof value === "object" && value !== null ? { ...value } : {};
}

function placeOf(path: readonly PropertyKey[]): string {
  return path
    .map((part, index) =>
      typeof part === "number" ? `[${part}]` : `${index === 0 ? "" : "."}${String(part)}`,
    )
    .join("");
}
