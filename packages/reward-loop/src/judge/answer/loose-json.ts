/**
 * Reads JSON as models write it: with LaTeX in its texts (`\alpha`, `\(`), with lines broken within
 * texts, and with a comma behind the last item. Nothing else is repaired.
 */

/** Undefined: it is no JSON. */
export function parseLoosely(text: string): { readonly value: unknown } | undefined {
  const value = parsed(text);
  if (value !== undefined || !/^[[{]/.test(text)) return value;
  const repaired = text.replaceAll(stringOrComma, (part) =>
    part === "," ? "" : part.replaceAll(escapeOrControl, repairedCharacter),
  );
  return repaired === text ? undefined : parsed(repaired);
}

const stringOrComma = /"[^"\\]*(?:\\[\s\S][^"\\]*)*"|,(?=\s*[}\]])/g;

// oxlint-disable-next-line no-control-regex -- these are what JSON does not permit in texts
const escapeOrControl = /\\(u[\da-fA-F]{4}|["\\/bfnrt])|\\|[\0-\x1f]/g;

function repairedCharacter(found: string, escaped: string | undefined): string {
  if (escaped !== undefined) return found;
  return found === "\\" ? "\\\\" : JSON.stringify(found).slice(1, -1);
}

function parsed(text: string): { readonly value: unknown } | undefined {
  try {
    return { value: JSON.parse(text) };
  } catch {
    return undefined;
  }
}
