import { expect, test } from "vitest";
import { Codec, sizeOf } from "../src/protocol/codec.ts";
import { Fifo } from "../src/shared/fifo.ts";
import { AnyArguments } from "../src/caller/calls/call-arguments.ts";
import { Call, type CallOwner } from "../src/caller/calls/call.ts";
import { Lineage, type LineageLink } from "../src/caller/objects/lineage.ts";
import { ObjectLostError } from "../src/shared/errors.ts";
import { ObjectEntry } from "../src/store/object-entry.ts";

const codec = new Codec({
  isReference: () => false,
  write: () => undefined,
  read: () => ({}),
  decline: () => undefined,
});

let sequence = 0;
const createEntry = (label: string): ObjectEntry => new ObjectEntry("owner", sequence++, label);

const link: LineageLink = {
  createEntry,
  adopt: async (entry, made) => {
    if (made.outcome?.value !== undefined) entry.returned(made.outcome.value);
  },
  describe: (error) => ({
    name: error.name,
    message: error.message,
    stack: "",
    fields: Object.fromEntries(Object.entries(error)),
  }),
};

/** Answers each call with its first argument. */
class Echo implements Pick<CallOwner, "settled" | "queueFor"> {
  readonly ran: Call[] = [];
  queueFor(): Fifo<Call> {
    return new Fifo();
  }
  submit(call: Call): void {
    this.ran.push(call);
    call.entry.resolve(call.args.values);
  }
  settled(): void {}
}

function callOf(echo: Echo, text: string, maxRetries: number, uses: ObjectEntry[] = []): Call {
  const plan = { route: { target: "task", method: "echo" }, maxRetries, retryExceptions: false };
  const values = codec.encode(text, "args");
  const entry = createEntry("echo");
  const owner = echo as unknown as CallOwner;
  return new Call(owner, plan, new AnyArguments(values, uses, undefined), entry);
}

/** A result that is known to be lost. */
function lostResult(lineage: Lineage, call: Call): ObjectEntry {
  call.entry.resolveAway({ bringing: "", bring: (entry) => lineage.remake(entry, loss) });
  lineage.note(call.entry, call);
  return call.entry;
}

const loss = new ObjectLostError("object", "its host was killed");

function reasonOf({ outcome }: ObjectEntry): unknown {
  return outcome?.ok === false ? outcome.failure.fields["reason"] : undefined;
}

test("a value is made again as often as its retries allow", async () => {
  const lineage = new Lineage(link);
  const echo = new Echo();
  const entry = lostResult(lineage, callOf(echo, "value", 2));
  for (let attempt = 1; attempt <= 2; attempt++) {
    await lineage.remake(entry, loss);
    expect(entry.outcome?.ok).toBe(true);
    expect(echo.ran).toHaveLength(attempt);
  }
  await lineage.remake(entry, loss);
  expect(reasonOf(entry)).toBe("max-attempts-exceeded");
});

test("one without retries, and one that nobody noted, are refused", async () => {
  const lineage = new Lineage(link);
  const entry = lostResult(lineage, callOf(new Echo(), "value", 0));
  await lineage.remake(entry, loss);
  expect(reasonOf(entry)).toBe("retries-disabled");
  const unknown = createEntry("echo");
  unknown.resolveAway({ bringing: "", bring: async () => undefined });
  await lineage.remake(unknown, loss);
  expect(reasonOf(unknown)).toBe("lineage-disabled");
});

test("a small ingredient is kept with the recipe, whatever became of it", async () => {
  const lineage = new Lineage(link);
  const echo = new Echo();
  const ingredient = createEntry("put");
  ingredient.resolve(codec.encode("small", "value"));
  const entry = lostResult(lineage, callOf(echo, "value", 1, [ingredient]));
  await lineage.remake(entry, loss);
  const [used] = echo.ran[0]?.args.dependencies ?? [];
  const value = used?.outcome?.value;
  expect(value === undefined ? undefined : codec.decode(value)).toBe("small");
});

test("beyond the limit the older half is forgotten, and says so", async () => {
  const lineage = new Lineage(link, 10_000);
  const echo = new Echo();
  const text = "x".repeat(1000);
  const entries = Array.from({ length: 5 }, () => lostResult(lineage, callOf(echo, text, 1)));
  expect(lineage.bytes).toBeLessThanOrEqual(5000);
  expect(lineage.bytes).toBeGreaterThanOrEqual(2 * sizeOf(codec.encode(text, "args")));
  for (const entry of entries) await lineage.remake(entry, loss);
  expect(entries.map(reasonOf)).toEqual([
    "lineage-evicted",
    "lineage-evicted",
    "lineage-evicted",
    undefined,
    undefined,
  ]);
});
