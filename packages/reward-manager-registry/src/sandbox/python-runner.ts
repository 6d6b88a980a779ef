/**
 * What Python runs in place of a program: it denies what a solution of a programming task has no business with, and then runs the program, or one function of it.
 *
 * Denied by audit hooks, which Python does not let anybody take away: the network, other processes, signals, foreign functions by ctypes, files outside of the program's folder (to be
 * read: all but those of Python itself), and sqlite3, which opens files by itself. What no hook hears of is replaced. A program that is made to get around them can; where the kernel gives namespaces (runtimes.ts) it finds no network and no other process then.
 *
 * Started as \`runner.py [name]\` in the program's folder. Without a name the program runs as a whole, as a script. With one the function of that name (or the method of that name of a
 * class Solution) is called with the arguments that stand on standard input as JSON, one per line. To file descriptor 3 goes { "value": what it returned } or { "compileError": true }.
 */

/** Names that solutions use without importing them (those that verl puts before programs), and where a function of a program is found. */
export const pythonPrelude: string = `
def known_names(names):
    import importlib
    modules = ("string", "re", "datetime", "collections", "heapq", "bisect", "copy", "math", "random", "statistics",
               "itertools", "functools", "operator", "io", "sys", "json", "builtins", "typing")
    for module in modules:
        exec(f"from {module} import *", names)
    for module in modules[:-2]:
        names[module] = importlib.import_module(module)
    names["sys"].setrecursionlimit(6 * 10**5)


def function_of(names, name):
    solution = names.get("Solution")
    if isinstance(solution, type) and hasattr(solution, name):
        return getattr(solution(), name)
    return names[name]
`;

/** See above. */
export const pythonRunner: string = `
import builtins, json, os, signal, sys, types

FOLDER = os.path.realpath(os.getcwd())
SILENT = {"signal": (("signal", "_signal"), ("pidfd_send_signal",)), "os": (("os", "posix"), ("mkfifo", "mknod"))}


def refused(name):
    def call(*_, **__):
        raise PermissionError(f"the sandbox denies {name}")
    return call


def confine():
    realpath, separator = os.path.realpath, os.sep
    prefixes = [sys.prefix, sys.base_prefix, sys.exec_prefix, os.path.dirname(os.__file__), *sys.path]
    readable = tuple({realpath(one).rstrip(separator) + separator for one in prefixes if one})
    readable += ("/usr/share/zoneinfo/", "/usr/lib/", "/lib/", "/proc/self/", "/sys/devices/system/cpu/")
    devices = ("/dev/null", "/dev/zero", "/dev/random", "/dev/urandom", "/dev/stdin", "/dev/stdout", "/dev/stderr",
               "/dev/fd/0", "/dev/fd/1", "/dev/fd/2", "/etc/localtime", "/proc/cpuinfo", "/proc/meminfo")
    own = FOLDER + separator
    writing = os.O_WRONLY | os.O_RDWR | os.O_CREAT | os.O_TRUNC | os.O_APPEND
    denied = ("socket.", "subprocess.", "os.exec", "os.posix_spawn", "os.spawn", "os.system", "os.fork", "os.startfile",
              "os.kill", "signal.pthread_kill", "pty.", "ctypes.dlsym", "ctypes.call_function", "ctypes.cdata/", "ftplib.",
              "smtplib.", "urllib.", "http.", "webbrowser.", "syslog.", "sys.remote_exec", "sqlite3.")
    changing = {"os.remove", "os.rename", "os.rmdir", "os.mkdir", "os.chmod", "os.chown", "os.link", "os.symlink",
                "os.truncate", "os.utime", "os.chdir", "os.setxattr", "shutil.rmtree", "shutil.move"}
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
    # Of these no hook hears.
    for module, (owners, names) in SILENT.items():
        for owner in owners:
            for name in names:
                if hasattr(sys.modules.get(owner), name):
                    setattr(sys.modules[owner], name, refused(f"{module}.{name}"))


${pythonPrelude}

def tell(what):
    with os.fdopen(3, "w", encoding="utf-8") as told:
        json.dump(what, told, default=lambda value: value.tolist() if hasattr(value, "tolist") else str(value))


def compiled(path):
    with open(path, encoding="utf-8") as file:
        source = file.read()
    try:
        return source, compile(source, path, "exec")
    except (SyntaxError, ValueError):
        tell({"compileError": True})
        raise


def run(name):
    source, code = compiled("program.py")
    main = types.ModuleType("__main__")
    main.__dict__.update(__builtins__=builtins, __file__="program.py")
    known_names(main.__dict__)
    if "np." in source:
        try:
            exec("import numpy as np", main.__dict__)
        except ImportError:
            pass
    main.__name__ = "__main__"
    sys.modules["__main__"] = main
    sys.argv = ["program.py"]
    if name is None:
        os.close(3)
        exec(code, main.__dict__)
        return
    args = [json.loads(line) for line in sys.stdin.read().split("\\n") if line.strip()]
    # JSON has no keys but texts; tests of one argument mean numbers where they can.
    if len(args) == 1 and isinstance(args[0], dict):
        try:
            args = [{int(key): value for key, value in args[0].items()}]
        except ValueError:
            pass
    exec(code, main.__dict__)
    value = function_of(main.__dict__, name)(*args)
    sys.stdout.flush()
    tell({"value": value})


name = sys.argv[1] if len(sys.argv) > 1 else None
confine()
run(name)
`;
