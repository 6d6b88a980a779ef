/**
 * Weak references that keep nothing alive, not even for the rest of the job.
 *
 * JavaScript keeps the target of a WeakRef until the running job ends, if that made or read the
 * WeakRef. So code that puts values without a turn between them would keep all of them. A loose
 * reference finds its target by a carrier, which the target alone keeps alive. The WeakRef of the
 * carrier is from an earlier job. A look keeps the carrier until the job ends; so the target leaves
 * that carrier and gets another one.
 *
 * Carriers are made in advance, in a turn of their own. A job that uses up all of them goes on with
 * plain WeakRefs.
 */
import { threadSlot } from "../shared/thread-slot.ts";

interface Carrier {
  target: object | undefined;
}

interface Carriers {
  /** Carriers without a target, from earlier jobs. */
  readonly ready: { readonly carrier: Carrier; readonly weak: WeakRef<Carrier> }[];
  /** The carriers of a target, one for each loose reference to it. */
  readonly ofTarget: WeakMap<object, Carrier[]>;
  isScheduled: boolean;
}

/** A thread begins with these: two for each of 64 values in one job. They take 13 KB. */
const fewReady = 128;
/** A thread that used half of the first ones has these: 100 KB. */
const mostReady = 1024;

const carriers: Carriers = threadSlot("loose-refs", () => ({
  ready: [],
  ofTarget: new WeakMap(),
  isScheduled: false,
}));

/** Has the first carriers of this thread made, for later jobs. */
export function prepareLooseRefs(): void {
  if (carriers.ready.length < fewReady) makeLater(fewReady);
}

function makeLater(count: number): void {
  if (carriers.isScheduled) return;
  carriers.isScheduled = true;
  setImmediate(() => {
    carriers.isScheduled = false;
    while (carriers.ready.length < count) {
      const carrier: Carrier = { target: undefined };
      carriers.ready.push({ carrier, weak: new WeakRef(carrier) });
    }
  }).unref();
}

export class LooseRef<Target extends object> {
  #weak: WeakRef<Carrier>;

  constructor(target: Target) {
    this.#weak = carry(target, undefined) ?? lateCarrier(target);
  }

  /** Returns the target, unless it was collected. */
  deref(): Target | undefined {
    const carrier = this.#weak.deref();
    const target = carrier?.target;
    if (carrier === undefined || target === undefined) return undefined;
    const weak = carry(target, carrier);
    if (weak !== undefined) {
      this.#weak = weak;
      carrier.target = undefined;
    }
    return target as Target;
  }
}

/** Gives a target a carrier from an earlier job, in place of one of its own or beside these. */
function carry(target: object, before: Carrier | undefined): WeakRef<Carrier> | undefined {
  const found = carriers.ready.pop();
  if (carriers.ready.length < fewReady / 2) makeLater(mostReady);
  if (found === undefined) return undefined;
  const { carrier, weak } = found;
  carrier.target = target;
  const own = carriers.ofTarget.get(target);
  if (own === undefined) carriers.ofTarget.set(target, [carrier]);
  else if (before === undefined) own.push(carrier);
  else own[own.indexOf(before)] = carrier;
  return weak;
}

/** The WeakRef of a new carrier keeps its target until the job ends. */
function lateCarrier(target: object): WeakRef<Carrier> {
  const carrier: Carrier = { target };
  const own = carriers.ofTarget.get(target);
  if (own === undefined) carriers.ofTarget.set(target, [carrier]);
  else own.push(carrier);
  return new WeakRef(carrier);
}
