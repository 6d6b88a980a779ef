import * as ray from "@rayling/core";
import { MessageChannel, Worker } from "node:worker_threads";
const Add = ray.remote(class Add { add(a: number, b: number): number { return a + b; } });
await ray.init({ prewarm: 1 });
const a = Add.remote();
await ray.get(a.add.remote(1, 2));
async function serial(n: number) { const lat: number[] = []; for (let i = 0; i < n; i++) { const t = performance.now(); await ray.get(a.add.remote(i, 1)); lat.push(performance.now() - t); } lat.sort((x, y) => x - y); return lat[n >> 1]! * 1000; }
async function inflight(rounds: number, depth: number) { const t = performance.now(); for (let r = 0; r < rounds; r++) { const refs = []; for (let i = 0; i < depth; i++) refs.push(a.add.remote(i, 1)); await ray.get(refs); } return rounds * depth / (performance.now() - t) * 1000; }
await serial(5000); await inflight(50, 1000);
for (let k = 0; k < 3; k++) console.log("serial p50 us", (await serial(5000)).toFixed(1), "in flight/s", (await inflight(200, 1000)).toFixed(0));
// raw
const w = new Worker(`const {parentPort}=require('worker_threads');parentPort.on('message',m=>parentPort.postMessage({id:m.id,r:m.a+m.b}))`, { eval: true });
let res: any; w.on("message", (m) => res(m));
const call = (m: any) => new Promise((r) => { res = r; w.postMessage(m); });
for (let k = 0; k < 3; k++) { const lat = []; for (let i = 0; i < 5000; i++) { const t = performance.now(); await call({ id: i, a: 1, b: 2 }); lat.push(performance.now() - t); } lat.sort((x, y) => x - y); console.log("raw serial p50", (lat[2500]! * 1000).toFixed(1)); }
await w.terminate();
await ray.shutdown();
