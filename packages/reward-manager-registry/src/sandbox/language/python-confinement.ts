/**
 * The limits of a program in Python: two walls around its process, put up before it runs.
 *
 * The kernel's wall is the one that counts: restrictions that Python requests for its own process,
 * through ctypes: no capabilities, no new privileges, Landlock (which files can be opened, no TCP,
 * no signals to others), and the filter of system calls. They cannot be undone, and executed
 * programs inherit them, so the launcher below serves other languages.
 *
 * Before it stand audit hooks, which Python code cannot remove and which report in plain words what
 * is denied: the network, other processes, signals, foreign functions by ctypes, files outside of
 * the scratch folder (reads may also reach Python's own files), and sqlite3, which opens files by
 * itself. Functions without audit events are replaced, as soon as their module is imported. A
 * malicious program can get around the hooks.
 *
 * The texts contain functions that runner.py and the launcher share. A failure here ends the
 * process before it has reported "ready" (confined-child.ts): no program runs half confined.
 */

/** The requests to the kernel, written as JSON beside the program. */
export interface KernelConfinement {
  /** The most processes and threads of the user; undefined: the machine's limit. */
  readonly processes?: number;
  /** Paths at or below which files may be opened. Missing paths are left out. */
  readonly landlock?: { readonly read: readonly string[]; readonly write: readonly string[] };
  /** The filter's bytes in hexadecimal digits. */
  readonly filter?: string;
  /** The place of the process id in the filter. */
  readonly processIdAt?: number;
}

/** The kernel's wall: `confine_by_kernel(wanted)`. */
export const pythonConfinement: string = `
def confine_by_kernel(wanted):
    import os
    if wanted.get("processes") is not None:
        import resource
        most = resource.getrlimit(resource.RLIMIT_NPROC)[1]
        count = wanted["processes"] if most == resource.RLIM_INFINITY else min(wanted["processes"], most)
        resource.setrlimit(resource.RLIMIT_NPROC, (count, count))
    if wanted.get("filter") is None and wanted.get("landlock") is None:
        return
    import ctypes, struct
    libc = ctypes.CDLL(None, use_errno=True)

    def checked(result, what):
        if result < 0:
            code = ctypes.get_errno()
            raise OSError(code, f"{what}: {os.strerror(code)}")
        return result

    def long_call(name, *args):
        return checked(getattr(libc, name)(*(ctypes.c_long(one) if isinstance(one, int) else one for one in args)), name)

    # linux/capability.h, version 3: none effective, permitted, inheritable.
    checked(libc.capset(struct.pack("Ii", 0x20080522, 0), bytes(24)), "capset")
    PR_SET_NO_NEW_PRIVS, PR_SET_SECCOMP, SECCOMP_MODE_FILTER = 38, 22, 2
    long_call("prctl", PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0)
    if wanted.get("landlock") is not None:
        restrict_files(long_call, wanted["landlock"])
    if wanted.get("filter") is not None:
        code = bytearray.fromhex(wanted["filter"])
        if wanted.get("processIdAt") is not None:
            struct.pack_into("<I", code, wanted["processIdAt"], os.getpid())
        memory = ctypes.create_string_buffer(bytes(code), len(code))
        program = struct.pack("HP", len(code) // 8, ctypes.addressof(memory))
        long_call("prctl", PR_SET_SECCOMP, SECCOMP_MODE_FILTER, program, 0, 0)


def restrict_files(call, paths):
    import os, stat, struct
    # linux/landlock.h. These numbers are the same on all architectures.
    CREATE, ADD, RESTRICT, VERSION, BENEATH = 444, 445, 446, 1, 1
    version = call("syscall", CREATE, 0, 0, VERSION)
    # Rights to files: 13 in version 1, then REFER, TRUNCATE, IOCTL_DEV. TCP comes with version 4, scopes with 6.
    files = (1 << {1: 13, 2: 14, 3: 15, 4: 15}.get(version, 16)) - 1
    rules = struct.pack("QQQ", files, 3, 3)[: 8 if version < 4 else 16 if version < 6 else 24]
    EXECUTE, WRITE, READ, LIST, TRUNCATE, IOCTL = 1, 2, 4, 8, 1 << 14, 1 << 15
    MAKE_DEVICES = 1 << 6 | 1 << 9 | 1 << 10 | 1 << 11
    ruleset = call("syscall", CREATE, rules, len(rules), 0)
    reading, writing = EXECUTE | READ | LIST, files & ~(EXECUTE | MAKE_DEVICES | IOCTL)
    for path, rights in [(one, reading) for one in paths["read"]] + [(one, writing) for one in paths["write"]]:
        try:
            at = os.open(path, os.O_PATH | os.O_CLOEXEC)
        except OSError:
            continue
        if not stat.S_ISDIR(os.fstat(at).st_mode):
            rights &= EXECUTE | WRITE | READ | TRUNCATE
        call("syscall", ADD, ruleset, BENEATH, struct.pack("=Qi", rights & files, at), 0)
        os.close(at)
    call("syscall", RESTRICT, ruleset, 0)
    os.close(ruleset)
`;

/** The audit hooks: `confine()`, which uses the names FOLDER and CODE of the runner. */
export const pythonHooks: string = `
# Functions of which no hook hears.
SILENT = {
    **dict.fromkeys(("os", "posix"), ("mkfifo", "mknod", "openpty", "posix_openpt")),
    **dict.fromkeys(("signal", "_signal"), ("pidfd_send_signal",)),
    # Another interpreter has no hooks.
    **dict.fromkeys(("_interpreters", "_xxsubinterpreters"), ("create",)),
    "_posixshmem": ("shm_open", "shm_unlink"),
    "_posixsubprocess": ("fork_exec",),
    "_remote_debugging": ("RemoteUnwinder",),
    # Tcl opens files by itself, and needs no screen.
    "_tkinter": ("create",),
    "nis": ("cat", "maps", "match"),
    "spwd": ("getspall", "getspnam"),
}
# Functions that open a file of which no hook hears, with the place of its path.
OPENING = {
    "_dbm": {"open": 0},
    "_gdbm": {"open": 0},
    "readline": {"append_history_file": 1, "read_history_file": 0, "read_init_file": 0, "write_history_file": 0},
}
# Modules for tests of Python itself: much of them is as silent.
HIDDEN = ("_testcapi", "_testinternalcapi", "_testlimitedcapi")


def refused(name):
    def call(*_, **__):
        raise PermissionError(f"the sandbox denies {name}")
    return call


def heard(function, at):
    def call(*args):
        path = args[at] if at < len(args) else None
        sys.audit("open", os.path.expanduser("~/.history") if path is None else path, None, os.O_RDWR)
        return function(*args)
    return call


def silence(module):
    name = module.__name__
    for one in SILENT.get(name, ()):
        if hasattr(module, one):
            setattr(module, one, refused(f"{name}.{one}"))
    for one, at in OPENING.get(name, {}).items():
        if hasattr(module, one):
            setattr(module, one, heard(getattr(module, one), at))


class SilencingLoader:
    def __init__(self, loader):
        self.loader = loader

    def create_module(self, spec):
        return self.loader.create_module(spec)

    def exec_module(self, module):
        self.loader.exec_module(module)
        silence(module)


class SilencingFinder:
    """Finds the modules of which no hook hears as all others do."""

    def find_spec(self, name, path=None, target=None):
        if name in HIDDEN:
            raise ModuleNotFoundError(f"the sandbox denies {name}", name=name)
        if name not in SILENT and name not in OPENING:
            return None
        for finder in sys.meta_path:
            spec = None if finder is self else finder.find_spec(name, path, target)
            if spec is not None:
                spec.loader = SilencingLoader(spec.loader)
                return spec
        return None


def confine():
    realpath, separator = os.path.realpath, os.sep
    prefixes = [sys.prefix, sys.base_prefix, sys.exec_prefix, os.path.dirname(os.__file__), *sys.path]
    readable = tuple({realpath(one).rstrip(separator) + separator for one in prefixes if one})
    readable += ("/usr/share/zoneinfo/", "/usr/lib/", "/lib/", "/proc/self/", "/sys/devices/system/cpu/", CODE + separator)
    devices = ("/dev/null", "/dev/random", "/dev/urandom", "/dev/stdin", "/dev/stdout", "/dev/stderr",
               "/dev/fd/0", "/dev/fd/1", "/dev/fd/2", "/etc/localtime", "/proc/cpuinfo", "/proc/meminfo")
    own = FOLDER + separator
    writing = os.O_WRONLY | os.O_RDWR | os.O_CREAT | os.O_TRUNC | os.O_APPEND
    denied = ("socket.", "subprocess.", "os.exec", "os.posix_spawn", "os.spawn", "os.system", "os.fork", "os.startfile",
              "os.kill", "signal.pthread_kill", "pty.", "ctypes.dlsym", "ctypes.call_function", "ctypes.cdata/", "ftplib.",
              "smtplib.", "urllib.", "http.", "webbrowser.", "syslog.", "sys.remote_exec", "sqlite3.",
              "resource.prlimit", "cpython.PyInterpreterState_New")
    changing = {"os.remove", "os.rename", "os.rmdir", "os.mkdir", "os.chmod", "os.chown", "os.link", "os.symlink",
                "os.truncate", "os.utime", "os.chdir", "os.setxattr", "os.removexattr", "shutil.rmtree", "shutil.move"}
    text, data = str, bytes

    def place(path):
        path = os.fsdecode(path)
        return path if path in devices else realpath(path)

    def hook(event, args):
        if event == "open":
            path, _, flags = args
            if not isinstance(path, (text, data)):
                return
            at = place(path)
            if at in devices or (at + separator).startswith(own):
                return
            if not (flags or 0) & writing and (at + separator).startswith(readable):
                return
            raise PermissionError(f"the sandbox denies opening {at}")
        if event in changing:
            for one in args:
                if isinstance(one, (text, data)) and not (place(one) + separator).startswith(own):
                    raise PermissionError(f"the sandbox denies {event} of {one!r}")
        elif event == "socket.gethostname":
            return
        elif event.startswith(denied):
            raise PermissionError(f"the sandbox denies {event}")

    sys.addaudithook(hook)
    for name in (*SILENT, *OPENING):
        if name in sys.modules:
            silence(sys.modules[name])
    sys.meta_path.insert(0, SilencingFinder())
`;

/**
 * The launcher, started as `launcher.py FILE COMMAND...`: it confines itself as the file says, and
 * becomes the command, which reports "ready" itself.
 */
export const pythonLauncher: string = `
import json, os, sys
${pythonConfinement}

with open(sys.argv[1], encoding="utf-8") as file:
    wanted = json.load(file)
os.set_inheritable(5, True)
confine_by_kernel(wanted)
os.execv(sys.argv[2], sys.argv[2:])
`;
