/**
 * The two isolations without namespaces: a program runs among the processes of its user, in a
 * folder on the disk. With `landlock` the kernel refuses access to anything else; `process` leaves
 * that to the languages, except for the filter of system calls if Python is there to set it.
 */

import type { Isolation, Places } from "./isolation.ts";
import { confinementBy, systemCallFilter } from "./system-call-filter.ts";

const filterOfProcess = confinementBy(
  process.platform === "linux" ? systemCallFilter(process.arch, "users") : undefined,
);

/** Files that the languages themselves read: about their own process, the processor and memory. */
const ofProcesses = ["/proc/self", "/proc/cpuinfo", "/proc/meminfo", "/proc/stat"] as const;
const read = ["/dev/random", "/dev/urandom", "/dev/full"] as const;

const places = (folder: string): Places => ({
  code: `${folder}/code`,
  scratch: `${folder}/scratch`,
});

export const landlock: Isolation = {
  name: "landlock",
  endsProcesses: false,
  places,
  confinement: ({ code, scratch }, view) => ({
    ...filterOfProcess,
    landlock: {
      read: [...view.map(({ path }) => path), ...ofProcesses, ...read, code],
      write: [scratch, "/dev/null"],
    },
  }),
  wrap: ({ command }) => ({ command, files: {} }),
};

export const filteredProcess: Isolation = {
  name: "process",
  endsProcesses: false,
  places,
  confinement: () => filterOfProcess,
  wrap: ({ command }) => ({ command, files: {} }),
};

/** The isolation of machines without seccomp. */
export const plainProcess: Isolation = {
  name: "process",
  endsProcesses: false,
  places,
  confinement: () => ({}),
  wrap: ({ command }) => ({ command, files: {} }),
};
