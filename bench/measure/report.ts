/**
 * The report that a suite hands over to be printed: tables of words, the numbers that targets look
 * at, and everything else for a program to read.
 */

/** The first row is the heading, the first column the names. */
export type Rows = readonly (readonly string[])[];

export interface Table {
  readonly title: string;
  readonly rows: Rows;
}

export interface Report {
  readonly tables: readonly Table[];
  /** By the keys of targets.ts. */
  readonly measured: Readonly<Record<string, number>>;
  /** Every round. */
  readonly details: unknown;
}

export function terminalTables(tables: readonly Table[]): string {
  return tables.map(({ title, rows }) => `${title}\n${terminalTable(rows)}\n`).join("\n");
}

export function markdownTables(tables: readonly Table[]): string {
  return tables.map(({ title, rows }) => `**${title}**\n\n${markdownTable(rows)}\n`).join("\n");
}

function terminalTable(rows: Rows): string {
  const widths = (rows[0] ?? []).map((_, column) =>
    Math.max(...rows.map((row) => (row[column] ?? "").length)),
  );
  const line = (row: readonly string[]): string =>
    row
      .map((cell, column) =>
        column === 0 ? cell.padEnd(widths[0] ?? 0) : cell.padStart(widths[column] ?? 0),
      )
      .join("  ");
  return rows.map(line).join("\n");
}

function markdownTable(rows: Rows): string {
  const line = (row: readonly string[]): string => `| ${row.join(" | ")} |`;
  const [heading = [], ...body] = rows;
  const rule = heading.map((_, column) => (column === 0 ? "---" : "---:"));
  return [line(heading), line(rule), ...body.map(line)].join("\n");
}

/** Told what is going on; each text takes the place of the one before. */
export type Progress = (text: string) => void;
