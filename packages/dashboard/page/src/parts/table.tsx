/** A table of rows: its columns can be sorted by, where the caller takes it. */
import type { ComponentChildren, JSX } from "preact";
import { cell } from "../data/text.ts";
import { Scrolling } from "./panel.tsx";

export type Row = Readonly<Record<string, unknown>>;

export interface Column {
  readonly key: string;
  readonly title: string;
  readonly isNumber?: boolean;
  /** Default: the value as text. */
  readonly show?: (row: Row) => ComponentChildren;
}

export interface Order {
  readonly column: string | undefined;
  readonly isDescending: boolean;
}

interface TableProps {
  readonly label: string;
  readonly columns: readonly Column[];
  readonly rows: readonly Row[];
  readonly keyOf: (row: Row) => string;
  /** Undefined: the table cannot be sorted. */
  readonly order?: Order;
  readonly onOrder?: (order: Order) => void;
  /** What stands there without rows. */
  readonly empty?: string;
}

export function Table(props: TableProps): JSX.Element {
  const { label, columns, rows, keyOf, empty = "None." } = props;
  if (rows.length === 0) return <p class="dim">{empty}</p>;
  return (
    <Scrolling label={label}>
      <table class={columns.length > mostOnNarrow ? "cards" : ""}>
        <thead>
          <tr>
            {columns.map((column) => (
              <Head key={column.key} column={column} {...props} />
            ))}
          </tr>
        </thead>
        <tbody>
          {rows.map((row) => (
            <tr key={keyOf(row)}>
              {columns.map((column) => (
                <Cell key={column.key} column={column} row={row} />
              ))}
            </tr>
          ))}
        </tbody>
      </table>
    </Scrolling>
  );
}

/** A screen of a telephone has as many columns beside each other; of more each row is a card. */
const mostOnNarrow = 3;

function Cell({ column, row }: { readonly column: Column; readonly row: Row }): JSX.Element {
  const { key, title, isNumber, show } = column;
  const content = show === undefined ? cell(row[key]) : show(row);
  const styles = [...(isNumber === true ? ["number"] : []), ...(content === "–" ? ["none"] : [])];
  return (
    <td class={styles.join(" ")} data-title={title}>
      {content}
    </td>
  );
}

function Head({ column, order, onOrder }: TableProps & { readonly column: Column }): JSX.Element {
  const { key, title, isNumber } = column;
  const style = isNumber === true ? "number" : "";
  if (order === undefined || onOrder === undefined) return <th class={style}>{title}</th>;
  const isOwn = order.column === key;
  const direction = order.isDescending ? "descending" : "ascending";
  return (
    <th class={style} aria-sort={isOwn ? direction : "none"}>
      <button
        type="button"
        class="sort"
        onClick={() => onOrder({ column: key, isDescending: isOwn && !order.isDescending })}
      >
        {title}
        <span aria-hidden="true">{isOwn ? (order.isDescending ? " ↓" : " ↑") : ""}</span>
      </button>
    </th>
  );
}

/** A state as text behind a mark, so that its colour is not needed. */
export function State({ state }: { readonly state: string }): JSX.Element {
  return (
    <span class={`state ${toneOf(state)}`}>
      <span aria-hidden="true" class="mark" />
      {state}
    </span>
  );
}

function toneOf(state: string): string {
  if (/DEAD|FAILED|REMOVED|infrastructure|user-code/.test(state)) return "bad";
  if (/PENDING|RESTARTING|RESCHEDULING|UNREADY|CANCELLED|timeout|rate-limit|data/.test(state)) {
    return "odd";
  }
  return "good";
}
