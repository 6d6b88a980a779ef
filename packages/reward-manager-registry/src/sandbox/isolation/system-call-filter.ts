/**
 * A seccomp filter (classic BPF, one per architecture) of system calls that a program does not
 * need: new processes, sockets, memory that no limit counts, other processes, mounts, namespaces,
 * and unused parts of the kernel. The kernel enforces it, whatever the language lets through.
 *
 * It refuses calls by name and permits the rest: it reduces the kernel's attack surface and does
 * not make a program safe. bubblewrap takes the bytes by `--seccomp`; elsewhere the program's own
 * process sets them before the program runs (language/python-confinement.ts).
 */

import type { KernelConfinement } from "../language/python-confinement.ts";

export interface SystemCallFilter {
  /** `struct sock_filter[]`, little-endian. */
  readonly bytes: Buffer;
  /** The place of the 32 bits that become the id of the process; undefined: there is none. */
  readonly processIdAt: number | undefined;
}

interface Architecture {
  /** AUDIT_ARCH_* of linux/audit.h. */
  readonly audit: number;
  /** The column of `refused`. */
  readonly column: 1 | 2;
  readonly clone: number;
  readonly fcntl: number;
  readonly ioctl: number;
  readonly mmap: number;
  readonly prlimit: number;
  readonly tgkill: number;
}

/** Name, number in asm/unistd.h of x64, number of arm64; - means that there is no such call. */
const refused = {
  always: [
    "ptrace 101 117, process_vm_readv 310 270, process_vm_writev 311 271, process_madvise 440 440, kcmp 312 272, pidfd_open 434 434",
    "pidfd_getfd 438 438, pidfd_send_signal 424 424, process_mrelease 448 448, fork 57 -, vfork 58 -",
    "socket 41 198, shmget 29 194, msgget 68 186, semget 64 190, mq_open 240 180, memfd_create 319 279, memfd_secret 447 447",
    "bpf 321 280, perf_event_open 298 241, userfaultfd 323 282, io_uring_setup 425 425, io_uring_enter 426 426, io_uring_register 427 427",
    "keyctl 250 219, add_key 248 217, request_key 249 218, mount 165 40, umount2 166 39, pivot_root 155 41, chroot 161 51, setns 308 268, unshare 272 97",
    "open_tree 428 428, move_mount 429 429, fsopen 430 430, fsconfig 431 431, fsmount 432 432, fspick 433 433, mount_setattr 442 442, open_tree_attr 467 467",
    "name_to_handle_at 303 264, open_by_handle_at 304 265, fanotify_init 300 262, quotactl 179 60, quotactl_fd 443 443",
    "swapon 167 224, swapoff 168 225, reboot 169 142, kexec_load 246 104, kexec_file_load 320 294, acct 163 89, syslog 103 116, vhangup 153 58",
    "init_module 175 105, finit_module 313 273, delete_module 176 106, clock_settime 227 112, clock_adjtime 305 266, adjtimex 159 171",
    "setxattr 188 5, lsetxattr 189 6, fsetxattr 190 7, setxattrat 463 463",
    "setpgid 109 154, setsid 112 157, settimeofday 164 170, sethostname 170 161, setdomainname 171 162, personality 135 92, iopl 172 -, ioperm 173 -, modify_ldt 154 -",
  ],
  /** Refused in addition where other processes are visible. */
  others: [
    "kill 62 129, tkill 200 130, rt_sigqueueinfo 129 138, rt_tgsigqueueinfo 297 240, setpriority 141 140, ioprio_set 251 30",
    "sched_setparam 142 118, sched_setscheduler 144 119, sched_setaffinity 203 122, sched_setattr 314 274",
  ],
  /** Refused in addition where the user's files are visible. */
  files: [
    "chmod 90 -, fchmod 91 52, fchmodat 268 53, fchmodat2 452 452",
    "chown 92 -, fchown 93 55, lchown 94 -, fchownat 260 54, utime 132 -, utimes 235 -, futimesat 261 -, utimensat 280 88",
    "removexattr 197 14, lremovexattr 198 15, fremovexattr 199 16, removexattrat 466 466",
  ],
} as const;

const clone3 = 435;
/** The newest call of Linux 6.17. Programs do not see newer ones. */
const newestKnown = 469;

const architectures: Partial<Record<NodeJS.Architecture, Architecture>> = {
  x64: {
    audit: 0xc000003e,
    column: 1,
    clone: 56,
    fcntl: 72,
    ioctl: 16,
    mmap: 9,
    prlimit: 302,
    tgkill: 234,
  },
  arm64: {
    audit: 0xc00000b7,
    column: 2,
    clone: 220,
    fcntl: 25,
    ioctl: 29,
    mmap: 222,
    prlimit: 261,
    tgkill: 131,
  },
};

/** linux/bpf_common.h. */
const [loadWord, and, jumpEqual, jumpAbove, jumpAtLeast, jumpSet, giveBack] = [
  0x20, 0x54, 0x15, 0x25, 0x35, 0x45, 0x06,
];
/** linux/seccomp.h. */
const allow = 0x7fff0000;
const killProcess = 0x80000000;
const failWith = (errno: number): number => 0x00050000 + errno;
const [notPermitted, noSuchCall] = [failWith(1), failWith(38)];
/** struct seccomp_data; the low halves of arguments. */
const [numberAt, architectureAt] = [0, 4];
const argumentAt = (index: number): number => 16 + 8 * index;

const cloneThread = 0x00010000;
/**
 * MAP_SHARED | MAP_ANONYMOUS, and MAP_GROWSDOWN: no limit of a process counts such memory. Shared
 * mappings of /dev/zero are uncounted, too, but no isolation lets a program open it.
 */
const [sharedAnonymous, growsDown] = [0x21, 0x100];
/**
 * TIOCSTI and TIOCLINUX type into a terminal as its user would; FIOSETOWN and SIOCSPGRP name who
 * gets signals of a file; FS_IOC_SETFLAGS and FS_IOC_FSSETXATTR change what a folder does.
 */
const refusedIoctls = [0x5412, 0x541c, 0x8901, 0x8902, 0x40086602, 0x401c5820] as const;
/** F_SETOWN, F_SETSIG, F_SETOWN_EX: signals to others, by a file. */
const refusedFcntls = [8, 10, 15] as const;

type Instruction = readonly [code: number, ifTrue: number, ifFalse: number, value: number];

/**
 * Returns undefined for an architecture whose numbers are unknown here.
 *
 * @param sees whether the program sees processes and files of its user: "own": none;
 * "processes": the one that started it; "users": all
 */
export function systemCallFilter(
  architecture: NodeJS.Architecture,
  sees: "own" | "processes" | "users",
): SystemCallFilter | undefined {
  const known = architectures[architecture];
  if (known === undefined) return undefined;
  const { audit, column, clone, fcntl, ioctl, mmap, prlimit, tgkill } = known;
  const isShared = sees !== "own";
  const withoutThem = [
    ...numbersOf(refused.always, column),
    ...(isShared ? numbersOf(refused.others, column) : []),
    ...(sees === "users" ? numbersOf(refused.files, column) : []),
  ];
  const beforeSignal: readonly Instruction[] = [
    [loadWord, 0, 0, architectureAt],
    [jumpEqual, 1, 0, audit],
    [giveBack, 0, 0, killProcess],
    [loadWord, 0, 0, numberAt],
    // 32-bit calls have other numbers.
    ...(architecture === "x64" ? when([jumpAtLeast, 0, 1, 0x40000000], killProcess) : []),
    ...when([jumpAbove, 0, 1, newestKnown], noSuchCall),
    // The C library then starts threads by clone, whose flags the filter can read.
    ...when([jumpEqual, 0, 1, clone3], noSuchCall),
    ...withoutThem.flatMap((number) => when([jumpEqual, 0, 1, number], notPermitted)),
    ...ofArgument(clone, 0, [[jumpSet, 1, 0, cloneThread]]),
    ...refusedIoctls.flatMap((one) => ofArgument(ioctl, 1, [[jumpEqual, 0, 1, one]])),
    ...refusedFcntls.flatMap((one) => ofArgument(fcntl, 1, [[jumpEqual, 0, 1, one]])),
    // A process may read and lower limits of its own (0).
    ...ofArgument(prlimit, 0, [[jumpEqual, 1, 0, 0]]),
    ...ofArgument(mmap, 3, [[jumpSet, 0, 1, growsDown]]),
    ...ofArgument(mmap, 3, [
      [and, 0, 0, sharedAnonymous],
      [jumpEqual, 0, 1, sharedAnonymous],
    ]),
  ];
  const [untilId, behindId] = signalOfItself(tgkill);
  const program: readonly Instruction[] = [
    ...beforeSignal,
    ...(isShared ? [...untilId, ...behindId] : []),
    [giveBack, 0, 0, allow],
  ];
  return {
    bytes: Buffer.concat(program.map(bytesOf)),
    // The value of an instruction is in its last four bytes.
    processIdAt: isShared ? 8 * (beforeSignal.length + untilId.length) - 4 : undefined,
  };
}

/** Returns what a process requests to set the filter itself. */
export function confinementBy(filter: SystemCallFilter | undefined): KernelConfinement {
  if (filter === undefined) return {};
  const { bytes, processIdAt } = filter;
  const placed = processIdAt === undefined ? {} : { processIdAt };
  return { filter: bytes.toString("hex"), ...placed };
}

function numbersOf(lines: readonly string[], column: 1 | 2): number[] {
  return lines
    .flatMap((line) => line.split(", "))
    .map((call) => Number(call.split(" ")[column]))
    .filter((number) => !Number.isNaN(number));
}

/** abort() and raise() signal a thread of their own process; its id is filled in there. */
function signalOfItself(tgkill: number): readonly [Instruction[], Instruction[]] {
  return [
    [
      [jumpEqual, 0, 4, tgkill],
      [loadWord, 0, 0, argumentAt(0)],
      [jumpEqual, 1, 0, 0],
    ],
    [
      [giveBack, 0, 0, notPermitted],
      [loadWord, 0, 0, numberAt],
    ],
  ];
}

function when(test: Instruction, result: number): Instruction[] {
  return [test, [giveBack, 0, 0, result]];
}

/**
 * Refuses the call if the last of `tests` falls through to the next instruction; otherwise the
 * filter goes on with the number.
 */
function ofArgument(number: number, index: number, tests: readonly Instruction[]): Instruction[] {
  const body: readonly Instruction[] = [
    [loadWord, 0, 0, argumentAt(index)],
    ...tests,
    [giveBack, 0, 0, notPermitted],
    [loadWord, 0, 0, numberAt],
  ];
  return [[jumpEqual, 0, body.length, number], ...body];
}

function bytesOf([code, ifTrue, ifFalse, value]: Instruction): Buffer {
  const bytes = Buffer.alloc(8);
  bytes.writeUInt16LE(code, 0);
  bytes.writeUInt8(ifTrue, 2);
  bytes.writeUInt8(ifFalse, 3);
  bytes.writeUInt32LE(value, 4);
  return bytes;
}
