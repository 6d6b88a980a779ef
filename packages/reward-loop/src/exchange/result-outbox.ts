/**
 * An actor's side of an exchange (the other side: row-exchange.ts): ready results go in the answer
 * of the oldest open call, all of a turn of the event loop at once. It collects for a turn and not
 * for a promise's reaction, because many samples are done in the same turn, each after a reaction
 * of its own.
 *
 * Invariants: a call stays open only while a row is pending, or for the turn in which it came; and
 * only a few calls do. Rows may come one by one and results many at a time, so that calls which
 * waited for results of their own would become more and more, until the actor accepts no other
 * call.
 */

import { toTables } from "./column-table.ts";
import type { Table } from "./column-table.ts";

/** A result that does not travel with others: its receiver has to ask for it. */
export interface Withheld<Note> {
  readonly id: number;
  readonly note: Note;
}

/** Rows under the numbers that their receiver knows. */
export interface NumberedRows<Row extends object = object, Note = undefined> {
  readonly ids: readonly number[];
  readonly rows: readonly Table<Row>[];
  readonly withheld?: readonly Withheld<Note>[];
}

const none: NumberedRows<never, never> = { ids: [], rows: [] };

/** Calls that stay open: enough for results of several turns, until others have come. */
export const mostOpen = 16;

export class Outbox<Row extends object, Note = undefined> {
  #ids: number[] = [];
  #rows: Row[] = [];
  #withheld: Withheld<Note>[] = [];
  #underWay = 0;
  #open: ((results: NumberedRows<Row, Note>) => void)[] = [];
  #isDue = false;
  readonly #nextTurn: (turn: () => void) => void;
  readonly #onSent: () => void;

  /** @param onSent called when all results are in answers */
  constructor(
    nextTurn: (turn: () => void) => void = (turn) => void setImmediate(turn),
    onSent: () => void = () => undefined,
  ) {
    this.#nextTurn = nextTurn;
    this.#onSent = onSent;
  }

  /** A call has come with so many rows. Resolves to what is ready by then, which may be nothing. */
  exchange(count: number): Promise<NumberedRows<Row, Note>> {
    // It brings no result of its own: open calls would become more with each.
    if (count === 0 && this.#open.length > 0) return Promise.resolve(none);
    this.#underWay += count;
    const answer = new Promise<NumberedRows<Row, Note>>((resolve) => void this.#open.push(resolve));
    const isSurplus = this.#open.length > mostOpen;
    if (!this.isEmpty || this.#underWay === 0 || isSurplus) this.#soon();
    return answer;
  }

  /** Numbers of rows whose results wait for a call. */
  get waiting(): readonly number[] {
    return [...this.#ids, ...this.#withheld.map(({ id }) => id)];
  }

  /** Whether no result waits for a call. */
  get isEmpty(): boolean {
    return this.#rows.length === 0 && this.#withheld.length === 0;
  }

  /** The result of a row that has come. */
  push(id: number, row: Row): void {
    this.#underWay -= 1;
    this.#ids.push(id);
    this.#rows.push(row);
    this.#soon();
  }

  /** The row has a result that its receiver has to ask for. */
  withhold(id: number, note: Note): void {
    this.#underWay -= 1;
    this.#withheld.push({ id, note });
    this.#soon();
  }

  #soon(): void {
    if (this.#isDue) return;
    this.#isDue = true;
    this.#nextTurn(() => this.#answer());
  }

  #answer(): void {
    this.#isDue = false;
    const answer = this.isEmpty ? undefined : this.#open.shift();
    if (answer !== undefined) {
      const results = { ids: this.#ids, rows: toTables(this.#rows) };
      answer(this.#withheld.length === 0 ? results : { ...results, withheld: this.#withheld });
      this.#ids = [];
      this.#rows = [];
      this.#withheld = [];
      this.#onSent();
    }
    const stayOpen = this.#underWay > 0 ? mostOpen : 0;
    for (const one of this.#open.splice(0, Math.max(0, this.#open.length - stayOpen))) one(none);
  }
}
