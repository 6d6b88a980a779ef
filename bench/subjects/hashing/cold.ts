/**
 * Hashes the items once with one pool in a fresh process, and prints the time, the CPU time and
 * every digest. The time runs from the import of the pool's library to the last digest.
 *
 *     node bench/subjects/hashing/cold.ts NAME ITEMS
 */
import { hashSubjects } from "./subjects.ts";
import { itemsOf } from "./work.ts";

const [name = "", count] = process.argv.slice(2);
const begin = hashSubjects[name];
if (begin === undefined) throw new TypeError(`no pool is named ${name}`);
const items = itemsOf(Number(count));
const before = process.cpuUsage();
const startMs = performance.now();
const subject = await begin();
const hashed = await subject.hashAll(items);
const ms = performance.now() - startMs;
const { user, system } = process.cpuUsage(before);
await subject.close();
const printed = JSON.stringify({ ms, cpuMs: (user + system) / 1000, hashed });
// The session of Rayling ends with the process, and a pipe takes 64 KiB at a time.
process.stdout.write(printed, () => process.exit());
