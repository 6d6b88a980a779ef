/**
 * The run table of a process: a small file that the process writes in place and its worker reads.
 * Processes of Node share no memory, and messages on a socket are lost when the process is killed
 * or aborts; the content of a file is not, and can be read while the process is blocked. A write
 * takes a microsecond or two, and is made only where something changes.
 *
 * Layout: 64-bit cells; the id of the run whose code is on the stack (0: none), 1 once the process
 * exits, then per slot the time at which the user's code last started on that run (0: not yet), in
 * nanoseconds. The file is unlinked as soon as both sides have opened it, so nothing is left of it,
 * however they end.
 */

import { closeSync, openSync, readSync, rmSync, writeSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { nanoid } from "nanoid";
import { codeOf, messageOf } from "@rayling/reward-manager-registry/values";
import type { RunTable, RunTablePlace } from "./run-table.ts";

const bytesPerCell: number = BigInt64Array.BYTES_PER_ELEMENT;
const runningCell = 0;
const exitingCell = 1;
const firstSlot = 2;

export class FileRunTable implements RunTable {
  readonly slots: number;
  readonly place: RunTablePlace;
  readonly #path: string;
  readonly #cell: BigInt64Array = new BigInt64Array(1);
  #file: number | undefined;
  /** The last value that was written; only the executor writes the file. */
  #written: number | undefined;

  private constructor(file: number, path: string, slots: number) {
    this.#file = file;
    this.#path = path;
    this.slots = slots;
    this.place = { kind: "file", path, slots };
  }

  /**
   * Creates the worker's side. Throws an error with the folder and the file system's code, and
   * leaves no file then.
   */
  static create(slots: number): FileRunTable {
    const path = join(tmpdir(), `rayling-runs-${nanoid()}`);
    let table: FileRunTable | undefined;
    try {
      const file = openSync(path, "wx+", 0o600);
      table = new FileRunTable(file, path, slots);
      // Written, not cut to size: a disk without room refuses it now, and no run later.
      const size = (firstSlot + slots) * bytesPerCell;
      const written = writeSync(file, new Uint8Array(size), 0, size, 0);
      if (written < size) throw new Error(`there is no room for ${size} bytes`);
      return table;
    } catch (error) {
      table?.close();
      throw notCreated(error);
    }
  }

  /** Opens the executor's side and unlinks the file. */
  static open({ path, slots }: Extract<RunTablePlace, { kind: "file" }>): FileRunTable {
    const file = openSync(path, "r+");
    rmSync(path);
    return new FileRunTable(file, path, slots);
  }

  get runningId(): number {
    return this.#written ?? Number(this.#read(runningCell));
  }

  set runningId(id: number) {
    if (id === this.#written) return;
    this.#written = id;
    this.#write(runningCell, BigInt(id));
  }

  get isExiting(): boolean {
    return this.#read(exitingCell) === 1n;
  }

  exiting(): void {
    this.#write(exitingCell, 1n);
  }

  start(slot: number): void {
    this.#write(firstSlot + slot, process.hrtime.bigint());
  }

  clear(slot: number): void {
    this.#write(firstSlot + slot, 0n);
  }

  hasStarted(slot: number): boolean {
    return this.#read(firstSlot + slot) !== 0n;
  }

  ageMs(slot: number): number | undefined {
    const start = this.#read(firstSlot + slot);
    return start === 0n ? undefined : Number(process.hrtime.bigint() - start) / 1e6;
  }

  close(): void {
    if (this.#file === undefined) return;
    closeSync(this.#file);
    this.#file = undefined;
    // The file still has its name if no executor opened it.
    rmSync(this.#path, { force: true });
  }

  #read(cell: number): bigint {
    if (this.#file === undefined) return 0n;
    readSync(this.#file, this.#cell, 0, bytesPerCell, cell * bytesPerCell);
    return this.#cell[0] ?? 0n;
  }

  #write(cell: number, value: bigint): void {
    if (this.#file === undefined) return;
    this.#cell[0] = value;
    writeSync(this.#file, this.#cell, 0, bytesPerCell, cell * bytesPerCell);
  }
}

/** The system's error of a full disk names no path. */
function notCreated(cause: unknown): Error {
  const error = new Error(
    `no file for its runs can be made in ${tmpdir()}, the folder for temporary files (TMPDIR): ${messageOf(cause)}`,
    { cause },
  );
  return Object.assign(error, { code: codeOf(cause) });
}
