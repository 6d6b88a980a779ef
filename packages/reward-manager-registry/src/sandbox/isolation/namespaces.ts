/**
 * Namespaces by util-linux, where there is no bubblewrap: a shell in new namespaces puts up a root of its own, moves into it, gives up what it may, and starts the program.
 *
 * In a user namespace that root made, its user is still the owner of files of root, /proc/sys among them, whatever rights it gave up: so /proc is mounted to be read only.
 */

import type { KernelConfinement } from "../language/python-confinement.ts";
import { foldersAround } from "./file-view.ts";
import type { ViewEntry } from "./file-view.ts";
import { mostProcesses, ownPlaces, scratchBytes } from "./isolation.ts";
import type { Isolation } from "./isolation.ts";
import { systemCallFilter } from "./system-call-filter.ts";

const filter = systemCallFilter(process.arch, "own");
const filterOfProcess: KernelConfinement =
  filter === undefined ? {} : { filter: filter.bytes.toString("hex") };

const flags =
  "--user --map-root-user --mount --net --pid --ipc --uts --fork --kill-child=KILL".split(" ");

const devices = ["null", "zero", "full", "random", "urandom"].map((name) => `/dev/${name}`);
const links = { fd: "/proc/self/fd", stdin: "fd/0", stdout: "fd/1", stderr: "fd/2" } as const;

export const namespaces: Isolation = {
  name: "namespaces",
  endsProcesses: true,
  places: () => ownPlaces,
  confinement: () => ({ processes: mostProcesses, ...filterOfProcess }),
  wrap({ command, folder, view }) {
    return {
      command: ["unshare", ...flags, "sh", "-c", entering(view), "sh", folder, ...command],
      files: { fstab: mounts(view, folder) },
    };
  },
};

/** The shell stays the first process of its namespace: signals, and how they are reported, are different for that one. */
function entering(view: readonly ViewEntry[]): string {
  const { code, scratch } = ownPlaces;
  const folders = [
    ...foldersAround(view),
    ...view.filter(({ kind }) => kind === "folder").map(pathOf),
  ];
  const files = [...view.filter(({ kind }) => kind === "file").map(pathOf), ...devices];
  const linked = view.flatMap((one) =>
    one.kind === "link" ? [`ln -s ${quoted(one.target)} .${quoted(one.path)}`] : [],
  );
  const ofDevices = Object.entries(links).map(([name, target]) => `ln -s ${target} dev/${name}`);
  return `set -e
cd "$1/root"
mount -n -t tmpfs -o mode=755,size=1m,nosuid,nodev sandbox .
cd "$1/root"
mkdir -p dev proc .${code} .${scratch} ${folders.map((path) => `.${quoted(path)}`).join(" ")}
: ${files.map((path) => `>.${quoted(path)}`).join(" ")}
${[...linked, ...ofDevices].join("\n")}
mount -n -a -T "$1/fstab"
pivot_root . .
umount -n -l .
mount -n -o remount,bind,ro,nosuid,nodev /
cd ${scratch}
shift
set +e
setpriv --no-new-privs --bounding-set=-all --inh-caps=-all -- "$@"
exit $?`;
}

function mounts(view: readonly ViewEntry[], folder: string): string {
  const root = `${folder}/root`;
  const { code, scratch } = ownPlaces;
  const bound = view.filter(({ kind }) => kind !== "link").map(pathOf);
  return [
    ...bound.map((path) => [path, root + path, "none", "rbind,ro,nosuid,nodev"]),
    ...devices.map((path) => [path, root + path, "none", "bind,ro,nosuid,noexec"]),
    [`${folder}/code`, root + code, "none", "bind,ro,nosuid,nodev"],
    ["proc", `${root}/proc`, "proc", "ro,nosuid,nodev,noexec"],
    ["sandbox", root + scratch, "tmpfs", `mode=700,size=${scratchBytes},nosuid,nodev`],
  ]
    .map((fields) => `${fields.map(escaped).join(" ")} 0 0\n`)
    .join("");
}

const pathOf = ({ path }: ViewEntry): string => path;

function quoted(text: string): string {
  return `'${text.replaceAll("'", String.raw`'\''`)}'`;
}

/** fstab(5): spaces, tabs, ends of lines and backslashes as octal numbers. */
function escaped(field: string): string {
  return field.replaceAll(
    /[\s\\#]/g,
    (character) => `\\${character.charCodeAt(0).toString(8).padStart(3, "0")}`,
  );
}
