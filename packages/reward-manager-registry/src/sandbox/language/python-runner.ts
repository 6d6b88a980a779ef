/**
 * The Python code around a program: it confines itself (python-confinement.ts says to what), and
 * then runs the program, or one function of it.
 *
 * It starts in the scratch folder, beside `program.py` and `confinement.json`: as `runner.py
 * script`, and the program runs as a script; as `runner.py function NAME`, and the function (or the
 * method of a class Solution) is called with arguments from standard input as JSON, one per line;
 * or as `runner.py serve`, and it does either in a process of its own for each run that is asked
 * for (python-fork-server.ts).
 * File descriptor 3 gets { "value": its result }, or { "exit": true } when a script ended by
 * SystemExit, which the program may forge, because it shares the process. File descriptor 5, which
 * closes before the program runs, gets "ready", and " compile-error".
 */

import { pythonConfinement, pythonHooks } from "./python-confinement.ts";
import { pythonForkServer } from "./python-fork-server.ts";
import { pythonPeer } from "./python-peer.ts";

/**
 * Names that solutions use without importing them (verl puts them before programs), the lookup of a
 * program's function, and the run of a program before lines of a test.
 */
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


def main_lines(source):
    """The numbers of lines that run only where the program is run as a program."""
    import ast
    tests = [ast.dump(ast.parse(test, mode="eval").body) for test in ("__name__ == '__main__'", "'__main__' == __name__")]
    for node in ast.parse(source).body:
        if isinstance(node, ast.If) and ast.dump(node.test) in tests:
            yield from range(node.body[0].lineno, node.body[-1].end_lineno + 1)


def run_for_lines(source, code, names):
    """
    Runs a program whose functions lines of a test call. Its main part may define what they use; where that part
    ends the program, or finds no input, the functions are there.
    """
    try:
        exec(code, names)
    except (Exception, SystemExit) as error:
        import traceback
        # The first line is the one above.
        of_program = error.__traceback__.tb_next
        if of_program is None or of_program.tb_lineno not in main_lines(source):
            raise
        traceback.print_exc()
`;

/**
 * The `__name__` of a program whose functions are called, as in verl: what it does only where it is
 * run as a program, behind `if __name__ == "__main__":`, does not run then.
 */
export const nameOfCalled = "tmp_sol";

/** The shared beginning of the runner, the server and the judge. */
export const pythonBase: string = `
import builtins, contextlib, json, os, re, signal, sys, types

FOLDER = os.path.realpath(os.getcwd())
CODE = os.path.dirname(os.path.realpath(__file__))
PROGRAM = os.path.join(CODE, "program.py")
CALLED = "${nameOfCalled}"


${pythonHooks}

${pythonPrelude}
${pythonConfinement}

def compiled():
    """What the program is, and its code. The program itself does not run yet: file descriptor 5 is ours."""
    with open(PROGRAM, encoding="utf-8") as file:
        source = file.read()
    try:
        code = compile(source, PROGRAM, "exec")
    except (SyntaxError, ValueError):
        os.write(5, b" compile-error")
        raise
    os.close(5)
    return source, code


def begun():
    # What our own process inherited from its parent, and what the walls were put up with. Some may be above our limit.
    try:
        highest = max(map(int, os.listdir("/proc/self/fd")))
    except OSError:
        highest = 0
    os.closerange(6, max(256, highest + 1))
    with open(os.path.join(CODE, "confinement.json"), encoding="utf-8") as file:
        confine_by_kernel(json.load(file))
    confine()
    os.write(5, b"ready")


KNOWN_NAMES = {}


def all_known():
    if not KNOWN_NAMES:
        known_names(KNOWN_NAMES)
    return KNOWN_NAMES


def module_of(source, name):
    """The program's module, before its code has run. What looks for the program in __main__ finds it under each name."""
    module = types.ModuleType(name)
    module.__dict__.update(all_known(), __builtins__=builtins, __file__="program.py")
    if re.search(r"\\bnp\\b", source):
        try:
            exec("import numpy as np", module.__dict__)
        except ImportError:
            pass
    module.__name__ = name
    sys.modules["__main__"] = sys.modules[name] = module
    sys.argv = ["program.py"]
    return module
`;

/** Runs the program, or one function of it, as the header of this file says. */
export const pythonRunner: string = `${pythonBase}
${pythonForkServer}

def leave():
    """
    Ends the process as Python does, but for what nobody sees: it would take all modules apart, in
    more time than most programs take. Returns where something of that fails, or a thread is left
    that may see it, for Python to do it.
    """
    import _thread, atexit, gc, io
    try:
        if "threading" in sys.modules:
            sys.modules["threading"]._shutdown()
        if _thread._count() > 0:
            return
        atexit._run_exitfuncs()
        for one in (sys.stdout, sys.stderr):
            if one is not None and not getattr(one, "closed", False):
                one.flush()
        # Finalizers find the names of the program as they were: what refers to itself goes whole.
        for name in ("__main__", CALLED):
            sys.modules.pop(name, None)
        gc.collect()
        # A text is written to what holds bytes, which is flushed after it.
        streams = [one for one in gc.get_objects() if isinstance(one, io.IOBase)]
        streams += [one for one in (sys.stdout, sys.stderr, sys.__stdout__, sys.__stderr__) if one is not None]
        for one in sorted(streams, key=lambda one: not isinstance(one, io.TextIOBase)):
            if not getattr(one, "closed", False):
                one.flush()
    except BaseException:
        return
    os._exit(0)


def tell(what):
    with os.fdopen(3, "w", encoding="utf-8") as told:
        json.dump(what, told, default=lambda value: value.tolist() if hasattr(value, "tolist") else str(value))


def run(name):
    source, code = compiled()
    names = module_of(source, "__main__" if name is None else CALLED).__dict__
    if name is None:
        try:
            exec(code, names)
        except SystemExit:
            with contextlib.suppress(OSError):
                tell({"exit": True})
            raise
        return
    args = [json.loads(line) for line in sys.stdin.read().split("\\n") if line.strip()]
    # JSON has no keys but texts; tests of one argument mean numbers where they can.
    if len(args) == 1 and isinstance(args[0], dict):
        try:
            args = [{int(key): value for key, value in args[0].items()}]
        except ValueError:
            pass
    exec(code, names)
    value = function_of(names, name)(*args)
    sys.stdout.flush()
    tell({"value": value})


kind, *rest = sys.argv[1:]
name = serve(*map(int, rest)) if kind == "serve" else rest[0] if kind == "function" else None
begun()
run(name)
leave()
`;

/** The operations of either side on an object of its own that the other side has. */
export const pythonOperations: string = `
import copy, io, operator, random

UNARY = {**{name: getattr(builtins, name) for name in ("len", "str", "repr", "bool", "int", "float", "complex", "abs", "reversed", "hash")},
         "index": operator.index, "neg": operator.neg, "pos": operator.pos, "invert": operator.invert}
BINARY = {"isinstance": isinstance, "issubclass": issubclass,
          **{name: getattr(operator, name) for name in ORDERS | ARITHMETIC - {"and", "or"} | IN_PLACE | {"eq", "contains", "and_", "or_"}}}
operations = {
    "item": lambda value, key: value[key],
    "put": lambda value, key, one: operator.setitem(value, key, one),
    "drop": lambda value, key: operator.delitem(value, key),
    "iter": iter,
    "next": next,
    "one": lambda value, name: UNARY[name](value),
    "round": round,
    "format": format,
    "copy": copy.copy,
    "deepcopy": copy.deepcopy,
    "enter": lambda value: value.__enter__(),
    "exit": lambda value, kind, args: value.__exit__(kind, kind and kind(*args), None),
    "both": lambda name, one, other: BINARY[name](one, other),
}
`;

/** Runs the program, and then serves the judge's requests until the judge is gone. */
export const pythonServer: string = `${pythonBase}
${pythonPeer}
${pythonOperations}

def run():
    source, code = compiled()
    names = module_of(source, "__main__").__dict__
    given = dict(names)

    def call(function, args, kwargs):
        try:
            return function(*args, **dict(kwargs))
        finally:
            sys.stdout.flush()

    def is_defined(name):
        return name in names and (name not in given or names[name] is not given[name])

    def named(name):
        if not is_defined(name):
            raise KeyError(name)
        return names[name]

    def call_heard(function, args, kwargs):
        """For a test that reads what is printed: what is, goes to it."""
        written = io.StringIO()
        try:
            with contextlib.redirect_stdout(written):
                return function(*args, **dict(kwargs))
        finally:
            peer.ask("write", written.getvalue())

    answers = {
        **operations,
        "defined": lambda wanted: [name for name in wanted if is_defined(name)],
        "name": named,
        "call": call,
        "call heard": call_heard,
        "get": getattr,
        "set": setattr,
        "unset": delattr,
        "seed": lambda args: random.seed(*args),
    }
    peer = Peer(answers)
    run_for_lines(source, code, names)
    sys.stdout.flush()
    peer.serve()


begun()
run()
`;
