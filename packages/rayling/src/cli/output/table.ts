/**
 * Rows as columns for people. Foreign text is shown without control characters, so that it cannot
 * move the cursor of a terminal.
 */
import util from "node:util";
import { plain } from "./output.ts";

type Style = Parameters<typeof util.styleText>[0];

const stateStyles: Readonly<Record<string, Style>> = {
  ALIVE: "green",
  CREATED: "green",
  FINISHED: "green",
  RUNNING: "green",
  DEAD: "red",
  FAILED: "red",
  REMOVED: "red",
  CANCELLED: "yellow",
  PENDING_CREATION: "yellow",
  DEPENDENCIES_UNREADY: "yellow",
  RESTARTING: "yellow",
  PENDING: "yellow",
  RESCHEDULING: "yellow",
};

/** Adds colours if stdout is a terminal with colours and NO_COLOR is not set. */
export function styled(style: Style, text: string): string {
  return util.styleText(style, text, { stream: process.stdout });
}

/** Returns one line for the heads and one for each row, in the order of `columns`. */
export function tableLines(rows: readonly object[], columns: readonly string[]): string[] {
  const cells = rows.map((row) => columns.map((column) => cellText(Reflect.get(row, column))));
  const widths = columns.map((column, index) =>
    Math.max(column.length, ...cells.map((row) => row[index]?.length ?? 0)),
  );
  const line = (texts: readonly string[], style: (text: string) => Style | undefined): string =>
    texts
      .map((text, index) => {
        const padding = index === texts.length - 1 ? 0 : (widths[index] ?? 0) - text.length + 2;
        const chosen = style(text);
        return (chosen === undefined ? text : styled(chosen, text)) + " ".repeat(padding);
      })
      .join("");
  return [
    line(columns, () => "bold"),
    ...cells.map((row) => line(row, (text) => stateStyles[text])),
  ];
}

export function columnsOf(rows: readonly object[]): readonly string[] {
  return [...new Set(rows.flatMap((row) => Object.keys(row)))];
}

export function cellText(value: unknown): string {
  if (value === undefined || value === null || value === "") return "-";
  const text = typeof value === "string" ? value : JSON.stringify(value);
  return plain(text);
}
