/** Writes values as JSON, whole numbers that a double cannot hold among them, digit by digit. */

/** Undefined for what JSON leaves out, as undefined and functions. */
export function jsonText(value: unknown): string | undefined {
  return JSON.stringify(value, (_, one: unknown) =>
    typeof one === "bigint" ? rawJson(String(one)) : one,
  );
}

/** ECMAScript's JSON.rawJSON, which Node 22 has and TypeScript does not know yet. */
const rawJson: (text: string) => unknown = Reflect.get(JSON, "rawJSON");
