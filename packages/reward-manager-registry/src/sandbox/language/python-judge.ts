/**
 * The Python code of the judge: the process that runs lines of a test. Names of the program in them
 * stand for objects in the program's process.
 *
 * The program decides nothing here. It gets values that the test itself hands over, may look into
 * objects of the test's own classes, and may call functions of the test; a function's code, frames
 * and globals stay out of its reach.
 *
 * A test that fails where it does what the judge cannot do ends with "unfit" on file descriptor 5,
 * and the reasons as the last line of standard error: that is no fault of the program. A program
 * cannot bring it about by what it does with values that the judge can handle.
 */

import { pythonPeer } from "./python-peer.ts";
import { pythonBase, pythonOperations } from "./python-runner.ts";

/** Runs lines of a test, `program.py`. */
export const pythonJudge: string = `${pythonBase}
${pythonPeer}
${pythonOperations}
import ast


COMPARING = {"isclose", "fabs", "Counter", "OrderedDict", "defaultdict", "deque"}


def decides(name, known):
    """Whether tests use it to compare: what Python has everywhere, modules, and closeness."""
    return hasattr(builtins, name) or isinstance(known.get(name), types.ModuleType) or name in COMPARING


# Not called only to find out whether a test means Python's own.
UNTRIED = {"exec", "eval", "input", "open", "print", "exit", "quit", "breakpoint", "help", "next"}


def of_the_task(tree, names, known):
    """Which names that Python has, too, are the program's: what the test does with them, Python's own does not.

    The text of the test alone says so: what a program defines besides its task changes nothing."""
    nodes = list(ast.walk(tree))

    def named(node):
        return {one.id for one in ast.walk(node) if isinstance(one, ast.Name)} - {one.arg for one in ast.walk(node) if isinstance(one, ast.arg)}

    def fails(node, used=()):
        """Whether this fails in Python; it may then be one name's fault."""
        free = named(node)
        if len(free & names) != 1 or not all(one in COMPARING or hasattr(builtins, one) and one not in UNTRIED for one in free):
            return set()
        try:
            value = eval(compile(ast.Expression(node), "test", "eval"), dict(known))
        except Exception:
            return free & names
        is_whole = all(hasattr(value, one) for one in used)
        return set() if is_whole and (value or not isinstance(node, ast.Compare)) else free & names

    found = set()
    for name in names:
        if isinstance(known.get(name), types.ModuleType):
            calls = [node for node in nodes if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == name]
            if len(calls) == sum(isinstance(node, ast.Name) and node.id == name for node in nodes):
                found.add(name)
    for node in nodes:
        if isinstance(node, ast.Assert):
            claims = node.test.values if isinstance(node.test, ast.BoolOp) and isinstance(node.test.op, ast.And) else [node.test]
            found.update(*(fails(one) for one in claims if isinstance(one, ast.Compare)))
        elif isinstance(node, ast.Assign) and isinstance(node.value, ast.Call) and isinstance(node.targets[0], ast.Name):
            variable = node.targets[0].id
            found |= fails(node.value, [one.attr for one in nodes if isinstance(one, ast.Attribute) and isinstance(one.value, ast.Name) and one.value.id == variable])
    return found


class Names(dict):
    """Globals of the test: what it assigns itself, then the program's, then what every program has."""

    def ask_for(self, peer, source, known):
        self.peer, self.known = peer, known
        used = {node.id for node in ast.walk(source) if isinstance(node, ast.Name)}
        defined = set(peer.ask("defined", sorted(used)))
        # A program that redefines abs() would judge itself. One whose task is to write sum() is asked for it: the test names nothing else of it, or Python's own does not do.
        own = {name for name in defined if not decides(name, known)}
        self.programs = own | of_the_task(source, defined - own, known) if own else defined
        self.deleted = set()

    def __delitem__(self, name):
        if name in self or not self.peer.ask("defined", [name]):
            super().__delitem__(name)
        self.deleted.add(name)

    def __missing__(self, name):
        if name in self.deleted:
            raise KeyError(name)
        if name not in self.programs and (name in self.known or hasattr(builtins, name) or not self.peer.ask("defined", [name])):
            return self.known[name]
        value = self.peer.ask("name", name)
        if type(value) is RemoteClass and name[:1].isupper() and name != "Solution":
            self.classes.add(value)
        return value


# What a test may be about that the judge has not: the program's own loop, clock, source, files, warnings, or processes.
ELSEWHERE = {"asyncio", "mock", "patch", "MagicMock", "monkeypatch", "inspect", "pickle", "subprocess", "multiprocessing", "threading", "socket", "signal",
             "builtins", "stdin", "input", "open", "tempfile", "pathlib", "shutil", "warnings", "warns", "logging", "redirect_stderr", "weakref", "gc",
             *(f"os.{name}" for name in ("environ", "putenv", "chdir", "mkdir", "makedirs", "remove", "unlink", "rmdir", "rename", "listdir", "path.exists"))}
# Nor what its exceptions and classes have besides what is copied.
UNSEEN = {"__cause__", "__context__", "__traceback__", "__notes__", "__bases__", "__base__", "__mro__", "mro", "__subclasses__", "__module__", "__code__",
          "__globals__", "__closure__", "__slots__", "__abstractmethods__"}
PLAIN = (str, bytes, list, tuple, dict, set, frozenset, bytearray, collections.deque)
SHOWN_OF = {types.GeneratorType: ("send", "throw", "close"), io.StringIO: dir(io.StringIO), io.BytesIO: dir(io.BytesIO)}
# What the program does to these in vain is its own fault.
KNOWN = (types.FunctionType, types.MethodType, types.BuiltinFunctionType, types.ModuleType, types.GeneratorType, type)
unfit = []


def note(what):
    if what not in unfit:
        unfit.append(what)


def note_passed(peer, what, value, name):
    """Only what the test passed, and what Python can do with it: the program may do in vain, with anything, what it likes."""
    if id(value) in peer.passed and hasattr(value, name) and not isinstance(value, KNOWN) and not is_own(value):
        note(f"{what} of a {type(value).__name__} that the test passes")


def is_own(value):
    """Whether the program may look into it: an object or a class that the test defines."""
    kind = value if isinstance(value, type) else type(value)
    return getattr(kind, "__module__", None) == "__test__" or type(value) is types.SimpleNamespace


def is_shown(value):
    if is_own(value) or is_remote(value) or isinstance(value, (io.StringIO, io.BytesIO)):
        return True
    return hasattr(type(value), "__next__") or type(value) in LETTERS or value is None or isinstance(value, (*SCALARS, type))


DUNDERS = {"item": "getitem", "put": "setitem", "drop": "delitem", "and_": "and", "or_": "or", "isinstance": "class", "issubclass": "class"}


def guard(peer, op, operation):
    def guarded(*values):
        for value in values[1:] if op == "both" else values[:1]:
            if not is_shown(value):
                name = values[0] if op == "both" else values[1] if op == "one" else op
                note_passed(peer, op, value, f"__{DUNDERS.get(name, name)}__")
                raise TypeError(f"the test gives no {op} of {type(value).__name__}")
        return operation(*values)
    return guarded


def public(peer, value, name):
    """Not what leads to the code, the frames and the globals of a function: what is expected stands there."""
    is_instance = is_own(value) and not isinstance(value, type)
    own = is_own(value) or getattr(value, "__module__", None) == "__test__"
    shown = name in ("__name__", "__qualname__", "__doc__") or name == "__dict__" and is_instance
    if name.startswith("__") and not shown or not (own or name in SHOWN_OF.get(type(value), ())):
        if not name.startswith("_"):
            note_passed(peer, name, value, name)
        raise AttributeError(f"the test gives no {name} of {type(value).__name__}")
    return name


def changeable(value, name):
    if isinstance(value, type) or not is_own(value) or name.startswith("__"):
        raise AttributeError(f"the test lets nobody set {name} of {type(value).__name__}")
    return name


def called(peer, function, args, kwargs):
    inner = getattr(function, "__func__", function)
    owner = getattr(function, "__self__", None)
    kind = type(function)
    if getattr(inner, "__module__", None) == "__test__" or is_own(function) or kind in (types.BuiltinFunctionType, types.MethodWrapperType) and (
        isinstance(owner, PLAIN) or type(owner) in SHOWN_OF
    ):
        return function(*args, **dict(kwargs))
    note_passed(peer, "a call", function, "__call__")
    raise TypeError("the test gives no such function")


def elsewhere(tree, programs):
    """Names in a test that are of ELSEWHERE, not what it, or the program, calls so itself: many call a value input."""
    nodes = list(ast.walk(tree))
    replaced = {one.id for node in nodes if isinstance(node, ast.Assign) and isinstance(node.value, ast.Lambda) for one in node.targets if isinstance(one, ast.Name)}
    own = {node.id for node in nodes if isinstance(node, ast.Name) and not isinstance(node.ctx, ast.Load)} - replaced
    defined = {node.name for node in nodes if isinstance(node, (ast.FunctionDef, ast.ClassDef))} - {"input"}
    own |= {node.arg for node in nodes if isinstance(node, ast.arg)} | defined | programs
    imported = {}
    for node in nodes:
        if isinstance(node, (ast.Import, ast.ImportFrom)):
            for one in node.names:
                imported[(one.asname or one.name).split(".")[0]] = (getattr(node, "module", None) or one.name).split(".")[0]
    for node in nodes:
        if isinstance(node, ast.Name) and node.id in imported:
            yield imported[node.id]
        if isinstance(node, ast.Name) and node.id not in own:
            yield node.id
        elif isinstance(node, ast.FunctionDef) and node in tree.body and node.name not in own:
            yield node.name
        elif isinstance(node, ast.Attribute) and ast.unparse(node.value) in ("sys", "unittest", "contextlib", "pytest"):
            yield node.attr
        elif isinstance(node, ast.Attribute):
            yield node.attr if node.attr in UNSEEN else ast.unparse(node)


def judge(text, code, known, names):
    classes, stdout = set(), sys.stdout

    def may_hear(remote, value):
        return type(remote) in classes and (isinstance(value, SCALARS) or not is_remote(value))

    def write(text):
        if sys.stdout is not stdout:
            sys.stdout.write(str(text))

    peer = Peer({}, True, may_hear, note)
    peer.answers = {
        **{op: guard(peer, op, one) for op, one in operations.items() if op not in ("copy", "deepcopy", "enter", "exit")},
        "call": lambda *values: called(peer, *values),
        "get": lambda value, name: getattr(value, public(peer, value, name)),
        "set": lambda value, name, one: setattr(value, changeable(value, name), one),
        "unset": lambda value, name: delattr(value, changeable(value, name)),
        "write": write,
    }
    ask = peer.ask
    peer.ask = lambda op, *values: ask("call heard" if op == "call" and sys.stdout is not stdout else op, *values)
    seed = random.seed

    def seed_both(*args):
        seed(*args)
        peer.ask("seed", args)

    random.seed = known["seed"] = seed_both
    names.classes = classes
    source = ast.parse(text)
    names.ask_for(peer, source, known)
    exec(code, names)


def run():
    reached = os.dup(5)
    text, code = compiled()
    names = Names(__name__="__test__", __builtins__=builtins)
    try:
        judge(text, code, dict(module_of(text, "__main__").__dict__), names)
    except Unanswered:
        raise
    except BaseException:
        for name in elsewhere(ast.parse(text), getattr(names, "programs", set())):
            if name in ELSEWHERE or name in UNSEEN:
                note(name)
        if unfit:
            os.write(reached, b" unfit")
            traceback.print_exc()
            print("\\n" + "; ".join(unfit)[:1000], file=sys.stderr, flush=True)
            # Whatever ends in order may write behind the last line.
            os._exit(1)
        raise


begun()
run()
`;
