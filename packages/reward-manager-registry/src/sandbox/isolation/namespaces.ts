/**
 * Namespaces through util-linux, for machines without bubblewrap: a shell in new namespaces mounts
 * a root of its own, moves into it, drops its privileges, and starts the program.
 *
 * In a user namespace that root made, its user still owns root's files, including /proc/sys,
 * whatever privileges it dropped: so /proc is mounted read-only.
 */

import { foldersAround } from "./file-view.ts";
import type { ViewEntry } from "./file-view.ts";
import { mostProcesses, ownPlaces, scratchBytes } from "./isolation.ts";
import type { Isolation } from "./isolation.ts";
import { confinementBy, systemCallFilter } from "./system-call-filter.ts";

const filterOfProcess = confinementBy(systemCallFilter(process.arch, "processes"));

const flags =
  "--user --map-root-user --mount --net --pid --ipc --uts --fork --kill-child=KILL".split(" ");

const devices = ["null", "full", "random", "urandom"].map((name) => `/dev/${name}`);
const ofDevices = [
  ["/dev/fd", "/proc/self/fd"],
  ["/dev/stdin", "fd/0"],
  ["/dev/stdout", "fd/1"],
  ["/dev/stderr", "fd/2"],
] as const;

export const namespaces: Isolation = {
  name: "namespaces",
  endsProcesses: true,
  places: () => ownPlaces,
  confinement: () => ({ processes: mostProcesses, ...filterOfProcess }),
  wrap({ command, folder, view }) {
    return {
      command: ["unshare", ...flags, "sh", "-c", entering, "sh", folder, ...command],
      files: { fstab: mounts(view, folder), ...filesToMountOn(view) },
      folders: foldersToMountOn(view),
      links: linksIn(view),
    };
  },
};

/**
 * One mount(8) mounts the whole fstab, the root first. The shell stays the first process of its
 * namespace, because signals behave differently for that one. An ordinary user's path may lack
 * pivot_root.
 */
const entering = `set -e
PATH="$PATH:/usr/sbin:/sbin"
mount -n -a -T "$1/fstab"
cd "$1/root"
pivot_root . .
umount -n -l .
cd ${ownPlaces.scratch}
shift
set +e
setpriv --no-new-privs --bounding-set=-all --inh-caps=-all -- "$@"
exit $?`;

function mounts(view: readonly ViewEntry[], folder: string): string {
  const root = `${folder}/root`;
  const { code, scratch } = ownPlaces;
  const bound = view.filter(({ kind }) => kind !== "link").map(pathOf);
  return [
    [root, root, "none", "bind,ro,nosuid,nodev"],
    ...bound.map((path) => [path, root + path, "none", "rbind,ro,nosuid,nodev"]),
    ...devices.map((path) => [path, root + path, "none", "bind,ro,nosuid,noexec"]),
    [`${folder}/code`, root + code, "none", "bind,ro,nosuid,nodev"],
    ["proc", `${root}/proc`, "proc", "ro,nosuid,nodev,noexec"],
    ["sandbox", root + scratch, "tmpfs", `mode=700,size=${scratchBytes},nosuid,nodev`],
  ]
    .map((fields) => `${fields.map(escaped).join(" ")} 0 0\n`)
    .join("");
}

function foldersToMountOn(view: readonly ViewEntry[]): string[] {
  const ofView = view.filter(({ kind }) => kind === "folder").map(pathOf);
  const { code, scratch } = ownPlaces;
  return [...foldersAround(view), ...ofView, "/proc", "/dev", code, scratch].map(inRoot);
}

function filesToMountOn(view: readonly ViewEntry[]): Record<string, string> {
  const ofView = view.filter(({ kind }) => kind === "file").map(pathOf);
  return Object.fromEntries([...ofView, ...devices].map((path) => [inRoot(path), ""]));
}

function linksIn(view: readonly ViewEntry[]): Record<string, string> {
  const ofView = view.flatMap((one) => (one.kind === "link" ? [[one.path, one.target]] : []));
  return Object.fromEntries(
    [...ofView, ...ofDevices].map(([path = "", target = ""]) => [inRoot(path), target]),
  );
}

const inRoot = (path: string): string => `root${path}`;
const pathOf = ({ path }: ViewEntry): string => path;

/** Escapes spaces, tabs, line ends and backslashes as octal numbers, as in fstab(5). */
function escaped(field: string): string {
  return field.replaceAll(
    /[\s\\#]/g,
    (character) => `\\${character.charCodeAt(0).toString(8).padStart(3, "0")}`,
  );
}
