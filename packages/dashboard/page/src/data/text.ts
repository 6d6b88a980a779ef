/** Values as people read them. */

export function count(value: number | undefined): string {
  if (value === undefined) return "–";
  return value.toLocaleString("en-US", { maximumFractionDigits: value < 100 ? 2 : 0 });
}

/** Up to four figures: scores, rates, costs. */
export function figure(value: number | null | undefined): string {
  if (value === undefined || value === null) return "–";
  const size = Math.abs(value);
  if (size > 0 && size < 1e-4) return value.toExponential(2);
  return value.toLocaleString("en-US", { maximumSignificantDigits: 4 });
}

export function bytes(value: number): string {
  const units = ["B", "KiB", "MiB", "GiB", "TiB"];
  let at = 0;
  let size = value;
  while (size >= 1024 && at < units.length - 1) {
    size /= 1024;
    at += 1;
  }
  return `${size.toLocaleString("en-US", { maximumFractionDigits: size < 10 ? 1 : 0 })} ${units[at]}`;
}

/** Milliseconds as 0.034 ms, 12 ms, 3.4 s, 5 min 6 s, 7 h 8 min. */
export function duration(ms: number | null | undefined): string {
  if (ms === undefined || ms === null) return "–";
  if (ms < 1) return `${Number(ms.toPrecision(2))} ms`;
  if (ms < 1000) return `${Math.round(ms * 10) / 10} ms`;
  const seconds = ms / 1000;
  if (seconds < 60) return `${seconds.toFixed(1)} s`;
  const minutes = Math.floor(seconds / 60);
  if (minutes < 60) return `${minutes} min ${Math.floor(seconds % 60)} s`;
  return `${Math.floor(minutes / 60)} h ${minutes % 60} min`;
}

/** A text or a number as it is: an id, the number of a process. */
export function idText(value: unknown): string {
  if (typeof value === "number") return String(value);
  return typeof value === "string" && value !== "" ? value : "–";
}

/** A cell of a table: a text, a number, an amount of each resource. */
export function cell(value: unknown): string {
  if (value === undefined || value === null || value === "") return "–";
  if (typeof value === "number") return figureOrWhole(value);
  if (typeof value === "boolean") return value ? "yes" : "no";
  if (typeof value === "string") return value;
  if (Array.isArray(value)) return value.map(cell).join(", ") || "–";
  const parts = Object.entries(value).map(([name, one]) => `${name} ${cell(one)}`);
  return parts.join(", ") || "–";
}

function figureOrWhole(value: number): string {
  return Number.isInteger(value) ? value.toLocaleString("en-US") : figure(value);
}
