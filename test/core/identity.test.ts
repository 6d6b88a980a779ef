/** Which remote is which: a host runs the one that was called, or refuses by name. Each program is a file of its own, run by Node, with the hosts of one isolation. */
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { inFull } from "../fixtures/suite.ts";
import { ended, prelude, type Printed, Programs } from "../fixtures/program.ts";

let programs: Programs;
beforeAll(async () => {
  programs = await Programs.make();
});
afterAll(() => programs.remove());

/** Runs the first of these files. */
function program(files: Readonly<Record<string, string>>, ...args: string[]): Promise<Printed> {
  return programs.run({ files, args });
}

/** A remote of some name that returns what it was given, as a function and as a class. */
const kinds: Readonly<Record<string, { readonly make: string; readonly call: string }>> = {
  functions: {
    make: "const make = (name) => ray.remote(() => name);\n",
    call: "const call = (one) => one.remote();\n",
  },
  classes: {
    make: "const make = (name) => ray.remote(class { name() { return name; } });\n",
    call: "const call = (one) => one.remote().name.remote();\n",
  },
};

describe.each(Object.entries(kinds))("%s", (kind, { make, call }) => {
  const start = prelude + make + call;
  /** For what becomes of a class as of a function. */
  const alike = test.runIf(
    kind === "functions" ||
      inFull("classes are registered as functions are; the gate has both by number and by name"),
  );

  alike("a registration that only the driver makes moves no other", async () => {
    const { lines } = await program({
      "main.mjs": `${start}
if (isDriver) make("audit");
if (isDriver) ray.remote(() => "audit"); const first = make("first");
const charge = make("charge"), refund = make("refund"), close = make("close");
say(await outcomes([charge, refund, close, first].map(call)));
${ended}`,
    });
    expect(lines).toEqual([["charge", "refund", "close", "first"]]);
  });

  test("those that one call makes are told apart by their order, and refused where their number differs", async () => {
    const { lines } = await program({
      "main.mjs": `${start}
const same = ["a", "b", "c"].map((name) => make(name));
const others = (isDriver ? ["audit", "charge", "refund"] : ["charge", "refund"]).map((name) => make(name));
say(await outcomes(same.map(call)));
say(await outcomes(others.map(call)));
${ended}`,
    });
    expect(lines[0]).toEqual(["a", "b", "c"]);
    const refused = expect.stringMatching(
      /cannot be found by a worker: its remote\(\) call \(.*main\.mjs:\d+:\d+\) has made 3 where it was called, and 2 in the worker/,
    ) as string;
    expect(lines[1]).toEqual([refused, refused, refused]);
  });

  alike("of two calls on one line it is the one that was made", async () => {
    const { lines } = await program({
      "main.mjs": `${start}
const one = isDriver ? make("driver") : make("host"), other = make("other");
say(await outcomes([one, other].map(call)));
${ended}`,
    });
    expect(lines).toEqual([
      [expect.stringMatching(/cannot be found by a worker: .*main\.mjs:\d+:\d+/), "other"],
    ]);
  });

  alike(
    "a helper in another file makes those of whoever calls it, whichever are loaded first",
    async () => {
      const files = {
        "helper.mjs": `import * as ray from "@rayling/core";\nexport ${make}`,
        "left.mjs": 'import { make } from "./helper.mjs";\nexport const left = make("left");\n',
        "right.mjs": 'import { make } from "./helper.mjs";\nexport const right = make("right");\n',
      };
      const { lines } = await program({
        "main.mjs": `${prelude}${call}
const order = isDriver ? ["right", "left"] : ["left"];
const all = {};
for (const name of order) Object.assign(all, await import("./" + name + ".mjs"));
say(await outcomes([all.left, all.right, all.left].map(call)));
${ended}`,
        ...files,
      });
      expect(lines).toEqual([["left", "right", "left"]]);
    },
  );

  alike("a file that was changed since the driver loaded it is refused by its name", async () => {
    const { lines } = await program({
      "main.mjs": `${prelude}${call}
import { readFileSync, writeFileSync } from "node:fs";
import { charge, refund } from "./actors.mjs";
const path = new URL("actors.mjs", import.meta.url);
if (isDriver) writeFileSync(path, readFileSync(path, "utf8").replace('make("charge"), refund = make("refund")', 'make("refund"), refund = make("charge")'));
say(await outcomes([charge, refund].map(call)));
${ended}`,
      "actors.mjs": `import * as ray from "@rayling/core";\n${make}export const charge = make("charge"), refund = make("refund");\n`,
    });
    const refused = expect.stringMatching(
      /actors\.mjs is not the file that the driver has loaded/,
    ) as string;
    expect(lines).toEqual([[refused, refused]]);
  });

  alike(
    "what a worker makes later, while it runs a call, is not what another has made",
    async () => {
      const { lines } = await program({
        "main.mjs": `${start}
const later = (name) => make(name);
const maker = ray.remote(async () => { const own = later("worker"); return (await Promise.allSettled([ray.get(call(own))]))[0].status; }, { numCpus: 0 });
await ray.init({ numCpus: 1 });
say(await ray.get(maker.remote()));
say(await outcomes([call(later("driver"))]));
${ended}`,
      });
      expect(lines).toEqual(["rejected", [expect.stringContaining("cannot be found by a worker")]]);
    },
  );

  test("one that is named is found by its name, whatever has called remote()", async () => {
    const { lines } = await program({
      "main.mjs": `${prelude}${call}
import { made } from "./made.mjs";
say(await outcomes(Object.values(made).map(call)));
${ended}`,
      "made.mjs": `import * as ray from "@rayling/core";
import * as things from "./things.mjs";
export const made = Object.fromEntries(Object.keys(things).map((exportName) => [exportName,
  ray.remote(things[exportName], { module: new URL("things.mjs", import.meta.url), exportName })]));
`,
      "things.mjs": make.includes("class")
        ? 'const of = (name) => class { name() { return name; } };\nexport const one = of("one"), two = of("two");\n'
        : 'const of = (name) => () => name;\nexport const one = of("one"), two = of("two");\n',
    });
    expect(lines).toEqual([["one", "two"]]);
  });
});

test("a name that is nobody's, and one that two have, are refused", async () => {
  const { lines } = await program({
    "main.mjs": `${prelude}
const told = (make) => { try { make(); return "made"; } catch (error) { return [error.name, error.option, error.message]; } };
const none = ray.remote(() => 1, { module: new URL("empty.mjs", import.meta.url), exportName: "none" });
say(told(() => ray.remote(() => 2, { module: new URL("empty.mjs", import.meta.url), exportName: "none" })));
say(told(() => ray.remote(() => 1, { module: "https://example.com/x.mjs", exportName: "x" })));
say(told(() => ray.remote(() => 1, { module: import.meta.url })));
say(await outcomes([none.remote()]));
${ended}`,
    "empty.mjs": "export const other = 1;\n",
  });
  expect(lines).toEqual([
    ["InvalidOptionError", "exportName", expect.stringContaining("another one was named none of")],
    ["InvalidOptionError", "module", expect.stringContaining("module must be the import.meta.url")],
    ["InvalidOptionError", "exportName", expect.stringContaining("not undefined")],
    [expect.stringContaining('exports no class, function or remote as "none"')],
  ]);
});

test("modules read the driver's arguments and title in its hosts", async () => {
  const { lines } = await program(
    {
      "main.mjs": `${prelude}
import { parseArgs } from "node:util";
const { values } = parseArgs({ options: { rate: { type: "string", default: "0.1" } } });
process.title = "my program";
const read = ray.remote(() => [values.rate, process.argv.slice(1), process.title]);
const Reader = ray.remote(class { read() { return [values.rate, process.argv.slice(1), process.title]; } });
await ray.init();
say([values.rate, process.argv.slice(1), process.title]);
say(await outcomes([read.remote(), Reader.remote().read.remote()]));
${ended}`,
    },
    "--rate",
    "0.5",
  );
  expect(lines[0]).toEqual([
    "0.5",
    [expect.stringMatching(/main\.mjs$/), "--rate", "0.5"],
    "my program",
  ]);
  expect(lines[1]).toEqual([lines[0], lines[0]]);
});

test("a module that ends the process while a host loads it is told as that", async () => {
  const { lines } = await program({
    "main.mjs": `${prelude}
if (!isDriver) { console.error("usage: main --rate N"); process.exit(64); }
const read = ray.remote(() => 1);
say(await outcomes([read.remote()]));
${ended}`,
  });
  expect(lines).toEqual([
    [expect.stringMatching(/its module called process\.exit\(64\) while the worker loaded it/)],
  ]);
});

test("a server that a module starts at its top level is warned of by its line, where a host starts it, too", async () => {
  const { lines, told } = await program({
    "main.mjs": `${prelude}
import { createServer } from "node:http";
const server = createServer().listen(0).unref();
const read = ray.remote(() => 1);
await ray.init();
say(await outcomes([read.remote()]));
${ended}`,
  });
  expect(lines).toEqual([[1]]);
  expect(told).toMatch(/main\.mjs:8:31: a server is started at the top level of a module/);
});

test("files that a module begins anew at its top level are warned of by their lines, in whichever way it does", async () => {
  const { lines, told } = await program({
    "main.mjs": `${prelude}
import fs, { closeSync, createWriteStream, openSync, promises, truncateSync, writeFileSync } from "node:fs";
if (isDriver) for (let way = 0; way < 5; way++) writeFileSync("out" + way + ".txt", "first");
writeFileSync("out0.txt", "anew");
await promises.writeFile("out1.txt", "anew");
closeSync(openSync("out2.txt", "w"));
createWriteStream("out3.txt").end("anew");
truncateSync("out4.txt");
fs.appendFileSync("log.txt", "line");
writeFileSync("own-" + process.pid + Math.random(), "");
const watched = ray.remote(() => String(fs.writeFileSync).includes("onBegunAnew") || String(writeFileSync).includes("onBegunAnew"));
await ray.init();
say(await outcomes([watched.remote()]));
${ended}`,
  });
  expect(lines).toEqual([[false]]);
  const warnings = told.split("\n").filter((line) => line.includes("RaylingWarning"));
  expect(warnings).toEqual(
    [0, 1, 2, 3, 4].map((way) => {
      const text = `main\\.mjs:${9 + way}:\\d+: the file out${way}\\.txt is truncated at the top level`;
      return expect.stringMatching(text) as unknown;
    }),
  );
});

describe("errors of the user's own classes are instances where they are caught", () => {
  const caught = `const told = async (ref) => { try { await ray.get(ref); return "nothing"; } catch (error) { return error; } };
`;

  test("defined in one file with class and driver, which waits at its top level", async () => {
    const { lines } = await program({
      "main.mjs": `${prelude}${caught}
class BudgetError extends Error { left = 3; constructor(message, options) { super(message, options); this.name = "BudgetError"; } isEmpty() { return this.left === 0; } }
const spend = ray.remote(() => { throw new BudgetError("over", { cause: new BudgetError("inside") }); });
const Purse = ray.remote(class { spend() { throw new BudgetError("actor"); } });
await ray.init();
for (const ref of [spend.remote(), Purse.remote().spend.remote()]) {
  const error = await told(ref);
  say([error instanceof BudgetError, error instanceof ray.TaskError, error.left, error.isEmpty?.(), error.message, error.cause instanceof BudgetError]);
}
${ended}`,
    });
    expect(lines).toEqual([
      [true, true, 3, false, "over", true],
      [true, true, 3, false, "actor", false],
    ]);
  });

  test("in a file without remotes, by name or with all that it exports", async () => {
    const { lines } = await program({
      "main.mjs": `${prelude}${caught}
import { BudgetError, RateError as Rate } from "./errors.mjs";
import * as errors from "./errors.mjs";
const budget = ray.remote(() => { throw new BudgetError("b"); });
const rate = ray.remote(() => { throw new Rate("r"); });
const space = ray.remote(() => { throw new errors.SpaceError("s"); });
await ray.init();
say([await told(budget.remote()) instanceof BudgetError, await told(rate.remote()) instanceof Rate, await told(space.remote()) instanceof errors.SpaceError]);
${ended}`,
      "errors.mjs":
        "export class BudgetError extends Error {}\nexport class RateError extends Error {}\nexport class SpaceError extends Error {}\n",
    });
    expect(lines).toEqual([[true, true, true]]);
  });

  test("in CommonJS modules", async () => {
    const { lines } = await program({
      "main.cjs": `const ray = require("@rayling/core");
const { BudgetError } = require("./errors.cjs");
const errors = require("./errors.cjs");
class LocalError extends Error {}
const budget = ray.remote(() => { throw new BudgetError("b"); });
const space = ray.remote(() => { throw new errors.SpaceError("s"); });
const local = ray.remote(() => { throw new LocalError("l"); });
const told = (ref) => ray.get(ref).catch((error) => error);
async function main() {
  await ray.init();
  console.log(JSON.stringify([await told(budget.remote()) instanceof BudgetError, await told(space.remote()) instanceof errors.SpaceError, await told(local.remote()) instanceof LocalError]));
  await ray.shutdown();
}
main();
`,
      "errors.cjs":
        "exports.BudgetError = class BudgetError extends Error {};\nexports.SpaceError = class SpaceError extends Error {};\n",
    });
    expect(lines).toEqual([[true, true, true]]);
  });

  test("without running the user's getters, or looking through what is large", async () => {
    const { lines } = await program({
      "main.mjs": `${prelude}${caught}
import { fail } from "./library.mjs";
let ran = 0;
const config = { get HiddenError() { ran += 1; return Error; }, get other() { ran += 1; return 1; } };
const large = new Float64Array(30_000_000);
const run = ray.remote(() => fail(config, large));
await ray.init();
const error = await told(run.remote());
say([error.name, error.message, ran]);
${ended}`,
      "library.mjs":
        'class HiddenError extends Error {}\nexport const fail = () => { throw new HiddenError("deep"); };\n',
    });
    expect(lines).toEqual([["HiddenError", "deep", 0]]);
  });

  test("made by a function, with one name for two, each is its own", async () => {
    const { lines } = await program({
      "main.mjs": `${prelude}${caught}
const of = (name) => ({ [name]: class extends Error {} })[name];
const SameName = of("SameName");
const other = of("SameName");
const mine = ray.remote(() => { throw new SameName("x"); });
const theirs = ray.remote(() => { throw new other("x"); });
await ray.init();
const [a, b] = [await told(mine.remote()), await told(theirs.remote())];
say([a instanceof SameName, a instanceof other, b instanceof SameName, b instanceof other, b.message]);
${ended}`,
    });
    expect(lines).toEqual([[true, false, false, true, "x"]]);
  });

  test("of a library that shows them to nobody, when both sides have registered them", async () => {
    const files = {
      "library.mjs": `import * as ray from "@rayling/core";
class HiddenError extends Error {}
if (!process.argv.includes("--not")) ray.registerError(HiddenError);
export const fail = () => { throw new HiddenError("deep"); };
export const isHidden = (error) => error instanceof HiddenError;
`,
    };
    const main = `${prelude}${caught}
import { fail, isHidden } from "./library.mjs";
const run = ray.remote(() => fail());
await ray.init();
const error = await told(run.remote());
say([isHidden(error), error.name, error.message]);
${ended}`;
    const registered = await program({ "main.mjs": main, ...files });
    expect(registered.lines).toEqual([[true, "Error", "deep"]]);
    const not = await program({ "main.mjs": main, ...files }, "--not");
    expect(not.lines).toEqual([[false, "HiddenError", "deep"]]);
  });
});
