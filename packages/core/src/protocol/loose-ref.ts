/**
 * Weak references that keep nothing alive, not even for the rest of the job.
 *
 * JavaScript keeps the target of a WeakRef until the running job ends, if that made or read the
 * WeakRef. So code that puts values without a turn between them would keep all of them. A loose
 * reference finds its target by a carrier, which the target alone keeps alive. The WeakRef of the
 * carrier is from an earlier job. A look keeps the carrier until the job ends; so the target leaves
 * that carrier and gets another one.
 *
 * Carriers are made in advance and used in the order in which they were made. A job that uses up
 * those of earlier jobs gets its own ones, which keep their targets until it ends.
 */
import { Fifo } from "../shared/fifo.ts";
import { threadSlot } from "../shared/thread-slot.ts";

interface Carrier {
  target: object | undefined;
}

/** A carrier without a target. */
interface Ready {
  readonly carrier: Carrier;
  readonly weak: WeakRef<Carrier>;
}

interface Carriers {
  readonly ready: Fifo<Ready>;
  /** The carriers of a target, one for each loose reference to it. */
  readonly ofTarget: WeakMap<object, Carrier[]>;
}

/**
 * A thread begins with these, which take 26 KB. A value that is put takes two, and a look after a
 * collection takes one for each value that is alive.
 */
const fewReady = 256;
/** A thread that used half of the first ones has these: 100 KB. */
const mostReady = 1024;

const carriers: Carriers = threadSlot("loose-refs", () => ({
  ready: new Fifo<Ready>(),
  ofTarget: new WeakMap(),
}));

/** Makes the first carriers of this thread, for later jobs. */
export function prepareLooseRefs(): void {
  makeReady(fewReady);
}

function makeReady(count: number): void {
  while (carriers.ready.size < count) carriers.ready.push(newReady());
}

function newReady(): Ready {
  const carrier: Carrier = { target: undefined };
  return { carrier, weak: new WeakRef(carrier) };
}

export class LooseRef<Target extends object> {
  #weak: WeakRef<Carrier>;

  constructor(target: Target) {
    this.#weak = carry(target, undefined);
  }

  /** Returns the target, unless it was collected. */
  deref(): Target | undefined {
    const before = this.#weak.deref();
    const target = before?.target;
    if (before === undefined || target === undefined) return undefined;
    this.#weak = carry(target, before);
    before.target = undefined;
    return target as Target;
  }
}

/** Gives a target the next carrier, in place of one of its own or beside these. */
function carry(target: object, before: Carrier | undefined): WeakRef<Carrier> {
  if (carriers.ready.size < fewReady / 2) makeReady(mostReady);
  const { carrier, weak } = carriers.ready.shift() ?? newReady();
  carrier.target = target;
  const others = carriers.ofTarget.get(target)?.filter((own) => own !== before);
  carriers.ofTarget.set(target, [...(others ?? []), carrier]);
  return weak;
}
