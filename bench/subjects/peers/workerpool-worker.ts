/** The other end of workerpool.ts. */
import workerpool from "workerpool";

workerpool.worker({ add: (a: number, b: number): number => a + b });
