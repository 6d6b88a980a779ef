/**
 * Values between the process of a program and its judge, as JSON. Plain values are made anew by the
 * reader, of Python's own classes only: no method of a program's object runs in the judge. Any
 * other object is a number under which its process keeps it.
 *
 * A container that can be changed has a number, too: each side has a copy, and every message tells
 * what has changed since the last one. So what one side does to a list, the other one sees, and a
 * list that was handed over comes back as the object that it is.
 */

/** `encode(peer, value)`, `decode(peer, value)`; `state`, `content`, `restore` of containers. */
export const pythonValues: string = `
import collections, datetime, decimal, fractions, functools, importlib, operator, re, types

DEEPEST = 1000
MOMENTS = {one.__name__: one for one in (datetime.date, datetime.datetime, datetime.time)}
SEQUENCES = {"l": list, "t": tuple, "S": set, "F": frozenset}
MAPPINGS = {"d": dict, "O": collections.OrderedDict, "C": collections.Counter}
LETTERS = {kind: letter for letter, kind in (SEQUENCES | MAPPINGS).items()}
SHARED = (list, dict, collections.OrderedDict, collections.Counter, collections.defaultdict, set, collections.deque, bytearray)
VIEWS = {type({}.keys()): "keys", type({}.values()): "values", type({}.items()): "items"}
# Types that the program may name: to make one gives a plain value, whatever it is made of.
TYPES = {one.__name__: one for one in (
    bool, int, float, complex, str, bytes, bytearray, list, tuple, dict, set, frozenset, range, object, type(None),
    collections.OrderedDict, collections.Counter, collections.defaultdict, collections.deque, decimal.Decimal, fractions.Fraction)}
# Whose functions the judge hands over by name. The program has its own ones.
LIBRARIES = {"builtins", "math", "cmath", "operator", "_operator", "itertools", "functools", "_functools", "statistics", "string", "re", "random", "json",
             "copy", "heapq", "_heapq", "bisect", "_bisect", "fractions", "decimal", "datetime", "collections", "numpy"}
MADE_OF = (operator.itemgetter, operator.attrgetter, operator.methodcaller)
# What a value of a derived class is beneath, read by the methods of Python's own class.
BENEATH = ((bool, bool), (int, int.__int__), (float, float.__float__), (str, str.__str__), (bytes, lambda value: bytes(memoryview(value))),
           (list, lambda value: list(list.__iter__(value))), (tuple, lambda value: tuple(tuple.__iter__(value))),
           (dict, lambda value: dict(dict.items(value))), (set, lambda value: set(set.__iter__(value))),
           (frozenset, lambda value: frozenset(frozenset.__iter__(value))))


def encode(peer, value, depth=0, shared=True):
    kind = type(value)
    if value is None or kind is bool or kind is str:
        return value
    if kind is int:
        # Python refuses to write long ones as decimals.
        return value if -(1 << 63) < value < 1 << 63 else ["i", hex(value)]
    if kind is float:
        return ["f", repr(value)]
    if depth < DEEPEST:
        if kind in SHARED:
            number = peer.shared_number(value)
            if number is not None:
                return ["a", number]
            number = peer.share(value) if shared else None
            return [*header(peer, value), number, content(peer, value, depth, shared)]
        if kind is tuple or kind is frozenset:
            return [LETTERS[kind], [encode(peer, one, depth + 1, shared) for one in value]]
        known = encode_rare(peer, value, kind, depth)
        if known is not None:
            return known
    if isinstance(value, types.ModuleType):
        return ["m", value.__name__, peer.keep(value)]
    if is_remote(value):
        return ["o", place_of(value).number]
    if isinstance(value, type) and issubclass(value, Exception):
        return ["e", encode_class(peer, value)]
    known = encode_named(peer, value, kind, depth)
    if known is not None:
        return known
    if isinstance(value, type):
        return encode_type(peer, value)
    beneath = next((plain(value) for base, plain in BENEATH if isinstance(value, base)), None) if depth < DEEPEST else None
    return ["h", peer.keep(value), encode_type(peer, kind), encode(peer, beneath, depth + 1, False)]


def header(peer, value):
    if type(value) is collections.defaultdict:
        return ["E", encode(peer, value.default_factory)]
    if type(value) is collections.deque:
        return ["q", value.maxlen]
    return ["B"] if type(value) is bytearray else [LETTERS[type(value)]]


def content(peer, value, depth=0, shared=True):
    if isinstance(value, bytearray):
        return value.hex()
    if isinstance(value, dict):
        return [[encode(peer, key, depth + 1, shared), encode(peer, one, depth + 1, shared)] for key, one in dict.items(value)]
    return [encode(peer, one, depth + 1, shared) for one in value]


def state(value):
    """What tells, compared by identity, whether a container has changed."""
    if isinstance(value, bytearray):
        return bytes(value)
    return [*dict.keys(value), *dict.values(value)] if isinstance(value, dict) else list(value)


def is_state(value, before):
    if type(value) is bytearray:
        return value == before
    now = value if type(value) is list else state(value)
    return len(now) == len(before) and all(map(operator.is_, now, before))


def encode_type(peer, kind):
    if kind.__name__ in TYPES and TYPES[kind.__name__] is kind:
        return ["N", "builtins", kind.__name__]
    number = peer.keep(kind)
    if number in peer.introduced:
        return ["k", number]
    peer.introduced.add(number)
    return ["k", number, kind.__name__, operators_of(kind)]


def encode_named(peer, value, kind, depth):
    """The test's functions of Python by their names. The judge takes types from the program, and nothing that it could run."""
    if peer.guarded:
        if kind is functools.partial:
            return ["p", encode(peer, value.func, depth + 1), encode(peer, (value.args, tuple(value.keywords.items())), depth + 1)]
        if kind in MADE_OF:
            return ["p", encode(peer, kind), encode(peer, (value.__reduce__()[1], ()), depth + 1)]
        module = getattr(value, "__module__", None) or getattr(getattr(value, "__objclass__", None), "__module__", None)
        if kind is types.BuiltinFunctionType and not isinstance(value.__self__, (types.ModuleType, type, type(None))):
            return None
        if module is None and kind.__module__ == "numpy":
            module = "numpy"
        path = getattr(value, "__qualname__", None) or getattr(value, "__name__", None)
        if module in LIBRARIES and path and named(module, path) is value:
            return ["N", module, path]
    elif isinstance(value, type) and TYPES.get(value.__name__) is value:
        return ["N", "builtins", value.__name__]
    return None


def named(module, path):
    try:
        return operator.attrgetter(path)(importlib.import_module(module))
    except (ImportError, AttributeError):
        return None


def encode_rare(peer, value, kind, depth):
    if kind is bytes:
        return ["b", value.hex()]
    if kind is slice:
        return ["s", [encode(peer, one, depth + 1) for one in (value.start, value.stop, value.step)]]
    if kind is datetime.timezone:
        return ["z", [encode(peer, one) for one in value.__getinitargs__()]]
    if kind is re.Pattern:
        return ["x", encode(peer, value.pattern), value.flags]
    if kind in VIEWS:
        return ["v", VIEWS[kind], [encode(peer, one, depth + 1) for one in value]]
    if kind is complex:
        return ["c", repr(value.real), repr(value.imag)]
    if kind is range:
        return ["r", value.start, value.stop, value.step]
    if kind is decimal.Decimal:
        return ["D", str(value)]
    if kind is fractions.Fraction:
        return ["R", value.numerator, value.denominator]
    if kind is datetime.timedelta:
        return ["U", value.days, value.seconds, value.microseconds]
    if kind.__name__ in MOMENTS and kind is MOMENTS[kind.__name__]:
        return ["T", kind.__name__, value.isoformat()]
    if kind.__module__ == "numpy":
        if kind.__name__ == "ndarray" and value.dtype.kind in "biufc":
            return ["n", value.dtype.str, list(value.shape), [encode(peer, one) for one in value.ravel().tolist()]]
        if getattr(value, "ndim", 1) == 0 and type(value.item()) is not kind:
            return encode(peer, value.item(), depth + 1)
    return None


def encode_class(peer, cls):
    if cls.__module__ == "builtins":
        return cls.__name__
    bases = [encode_class(peer, one) for one in cls.__bases__ if issubclass(one, BaseException)]
    return [peer.keep(cls), cls.__name__, bases]


def decode(peer, value):
    if value is None or isinstance(value, (bool, int, str)):
        return value
    kind, *rest = value
    if kind == "f":
        return float(rest[0])
    if kind == "i":
        return int(rest[0], 16)
    if kind == "a":
        return peer.shared[rest[0]].own
    if kind == "t" or kind == "F":
        return SEQUENCES[kind]([decode(peer, one) for one in rest[0]])
    if kind in "lSdOCEqB":
        value = empty(peer, kind, rest)
        if rest[-2] is not None:
            peer.share(value, int(rest[-2]))
        restore(peer, value, rest[-1])
        if rest[-2] is not None:
            peer.shared[rest[-2]].agreed = state(value)
        return value
    if kind == "b":
        return bytes.fromhex(rest[0])
    if kind == "s":
        return slice(*[decode(peer, one) for one in rest[0]])
    if kind == "z":
        return datetime.timezone(*[decode(peer, one) for one in rest[0]])
    if kind == "x":
        return re.compile(decode(peer, rest[0]), int(rest[1]))
    if kind == "v":
        return view(str(rest[0]), [decode(peer, one) for one in rest[1]])
    if kind == "c":
        return complex(float(rest[0]), float(rest[1]))
    if kind == "r":
        return range(*map(int, rest))
    if kind == "D":
        return decimal.Decimal(str(rest[0]))
    if kind == "R":
        return fractions.Fraction(int(rest[0]), int(rest[1]))
    if kind == "U":
        return datetime.timedelta(*map(int, rest))
    if kind == "T":
        return MOMENTS[rest[0]].fromisoformat(rest[1])
    if kind == "n":
        import numpy
        if numpy.dtype(rest[0]).kind not in "biufc":
            raise ValueError("an array of objects")
        return numpy.array([decode(peer, one) for one in rest[2]], dtype=rest[0]).reshape([int(one) for one in rest[1]])
    if kind == "o":
        return peer.kept[rest[0]]
    if kind == "m":
        return peer.module(str(rest[0]), int(rest[1]))
    if kind == "e":
        return peer.stand_in(rest[0])
    if kind == "k":
        return peer.remote_type(*rest)
    if kind == "h":
        return peer.remote(int(rest[0]), decode(peer, rest[1]), decode(peer, rest[2]))
    if kind == "N" and peer.guarded:
        return TYPES[rest[1]]
    if kind == "N":
        return TYPES.get(rest[1]) or named(rest[0], rest[1])
    if kind == "p" and not peer.guarded:
        function, (args, kwargs) = decode(peer, rest[0]), decode(peer, rest[1])
        return function(*args, **dict(kwargs)) if function in MADE_OF else functools.partial(function, *args, **dict(kwargs))
    raise ValueError(f"there is no kind {kind!r}")


def empty(peer, kind, rest):
    if kind == "q":
        return collections.deque(maxlen=rest[0])
    if kind == "E":
        return collections.defaultdict(decode(peer, rest[0]))
    return bytearray() if kind == "B" else (SEQUENCES | MAPPINGS)[kind]()


def view(kind, values):
    if kind == "items":
        return dict(values).items()
    return dict.fromkeys(values).keys() if kind == "keys" else dict(enumerate(values)).values()


def restore(peer, own, now):
    """Makes a container what it is on the other side. One whose keys stay may be what a loop runs over."""
    if isinstance(own, bytearray):
        own[:] = bytes.fromhex(now)
    elif isinstance(own, dict):
        pairs = {decode(peer, key): decode(peer, one) for key, one in now}
        if list(own) != list(pairs):
            own.clear()
        for key, one in pairs.items():
            own[key] = one
    elif isinstance(own, list):
        own[:] = [decode(peer, one) for one in now]
    else:
        values = [decode(peer, one) for one in now]
        own.clear()
        (own.update if isinstance(own, set) else own.extend)(values)
`;
