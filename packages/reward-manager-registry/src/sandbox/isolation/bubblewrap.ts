/**
 * Isolation by bubblewrap (Debian, Fedora, Arch: package `bubblewrap`), the tool with which Flatpak
 * isolates programs. It needs user namespaces, or its own setuid bit, or root.
 *
 * `@anthropic-ai/sandbox-runtime` was considered: it runs bwrap for agents that may read the
 * machine and use the network through a proxy, neither of which is wanted here.
 */

import type { ViewEntry } from "./file-view.ts";
import { mostProcesses, ownPlaces, scratchBytes } from "./isolation.ts";
import type { Isolation } from "./isolation.ts";
import { confinementBy, systemCallFilter } from "./system-call-filter.ts";

const filter = systemCallFilter(process.arch, "own");
/** The process that forks programs of Python needs the call that the filter refuses. */
const filterOfPython = confinementBy(systemCallFilter(process.arch, "processes"));

const { code, scratch } = ownPlaces;

const walls = words(
  `--unshare-user --unshare-pid --unshare-net --unshare-ipc --unshare-uts --unshare-cgroup-try
   --die-with-parent --new-session --cap-drop ALL --hostname sandbox`,
);

/**
 * If root runs it, its user owns the switches in /proc/sys, so they are mounted read-only.
 * /dev/zero gives memory that no limit counts, so /dev/null covers it.
 */
const system = words(
  `--proc /proc --remount-ro /proc --dev /dev --dev-bind /dev/null /dev/zero --remount-ro /dev`,
);

export const bubblewrap: Isolation = {
  name: "bubblewrap",
  endsProcesses: true,
  places: () => ownPlaces,
  confinement: (_places, _view, language) => ({
    processes: mostProcesses,
    ...(language === "python" ? filterOfPython : {}),
  }),
  wrap({ command, folder, view, isFiltered }) {
    const ofStart = isFiltered ? undefined : filter;
    return {
      command: [
        "bwrap",
        ...walls,
        ...view.flatMap(argumentsOf),
        ...system,
        "--ro-bind",
        `${folder}/code`,
        code,
        ...words(`--size ${scratchBytes} --tmpfs ${scratch}`),
        // The root becomes read-only after all mounts in it.
        ...words(`--remount-ro / --chdir ${scratch}`),
        ...(ofStart === undefined ? [] : ["--seccomp", "6"]),
        "--",
        ...command,
      ],
      files: ofStart === undefined ? {} : { "filter.bpf": ofStart.bytes },
      ...(ofStart === undefined ? {} : { filter: "filter.bpf" }),
    };
  },
};

function argumentsOf(entry: ViewEntry): string[] {
  return entry.kind === "link"
    ? ["--symlink", entry.target, entry.path]
    : ["--ro-bind", entry.path, entry.path];
}

function words(text: string): string[] {
  return text.split(/\s+/);
}
