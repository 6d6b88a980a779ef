/**
 * Sends rows to an actor and receives results (the actor's side: result-outbox.ts): all rows of a
 * turn go in one call, and each call is answered with all results that are ready then, for any
 * rows.
 *
 * While a row has no result at least one call is open, so that results need not wait and the death
 * of the actor is noticed; it is reported once. Without pending rows nothing keeps the process
 * alive.
 */

import { AsyncResource } from "node:async_hooks";
import * as ray from "@rayling/core";
import type { ObjectRef } from "@rayling/core";
import { PATIENT } from "../time/stuck-warning.ts";
import type { NumberedRows, Withheld } from "./result-outbox.ts";
import { fromTables } from "./column-table.ts";

/** Rows in one call: few enough for the other side to begin while this one still writes. */
const most = 256;

export interface ExchangeOwner<Row, Result extends object, Note> {
  /**
   * Sends rows; also called without any. Throws NotEncodableError if one of them cannot travel.
   *
   * @param isLast no other row of this turn comes after it: the owner may add what is about rows
   */
  readonly call: (rows: readonly Row[], isLast: boolean) => ObjectRef<NumberedRows<Result, Note>>;
  /** The row was in a call with a row that cannot travel: it is to be sent alone. */
  readonly alone: (row: Row) => void;
  /** @param ids the number of each result's row, as the other side was given it */
  readonly arrived: (ids: readonly number[], results: readonly Result[]) => void;
  /** The row has a result that has to be asked for. */
  readonly withheld: (one: Withheld<Note>) => void;
  /** No further result will arrive. */
  readonly lost: (error: unknown) => void;
}

export class Exchange<Row, Result extends object, Note = undefined> {
  readonly #owner: ExchangeOwner<Row, Result, Note>;
  /**
   * The async context in which the exchange was made. Calls run in it, and not in that of the task
   * that pushed first: if that task is cancelled, other tasks have rows there, too.
   */
  readonly #asItsOwn = new AsyncResource("Exchange");
  #rows: Row[] = [];
  #isDue = false;
  /** A last call is to be sent even if there are no rows. */
  #isAsked = false;
  /** Rows that have no result. */
  #underWay = 0;
  /** Calls that are not answered. */
  #open = 0;
  #isLost = false;

  constructor(owner: ExchangeOwner<Row, Result, Note>) {
    this.#owner = owner;
  }

  /** Sends the row together with all others of this turn. */
  push(row: Row): void {
    this.#rows.push(row);
    this.#underWay += 1;
    this.#soon();
  }

  /**
   * Sends a call in this turn even without rows: the owner has something to add to the last one.
   */
  callSoon(): void {
    this.#isAsked = true;
    this.#soon();
  }

  #soon(): void {
    if (this.#isDue) return;
    this.#isDue = true;
    process.nextTick(() => this.#asItsOwn.runInAsyncScope(() => this.#flush()));
  }

  #flush(): void {
    this.#isDue = false;
    const rows = this.#rows;
    this.#rows = [];
    for (let from = 0; from < rows.length && !this.#isLost; from += most) {
      this.#call(rows.slice(from, from + most), from + most >= rows.length);
    }
    const isMissing = this.#open === 0 && this.#underWay > 0;
    if (!this.#isLost && (this.#isAsked || isMissing)) this.#call([], true);
  }

  #call(rows: readonly Row[], isLast: boolean): void {
    try {
      const call = this.#owner.call(rows, isLast);
      if (isLast) this.#isAsked = false;
      void this.#answered(call);
    } catch (error) {
      // All but the runtime's own errors come from a row, as one of a getter: alone it fails alone.
      if (error instanceof ray.RayError) return this.#end(error);
      this.#underWay -= rows.length;
      for (const row of rows) this.#owner.alone(row);
    }
  }

  async #answered(call: ObjectRef<NumberedRows<Result, Note>>): Promise<void> {
    this.#open += 1;
    try {
      const { ids, rows, withheld = [] } = await ray.get(call, PATIENT);
      this.#open -= 1;
      this.#underWay -= ids.length + withheld.length;
      for (const one of withheld) this.#owner.withheld(one);
      this.#owner.arrived(ids, fromTables(rows));
      // Checked after `arrived`, which may have pushed further rows.
      if (this.#open === 0 && this.#underWay > 0) this.#soon();
    } catch (error) {
      this.#end(error);
    }
  }

  #end(error: unknown): void {
    if (this.#isLost) return;
    this.#isLost = true;
    this.#owner.lost(error);
  }
}
