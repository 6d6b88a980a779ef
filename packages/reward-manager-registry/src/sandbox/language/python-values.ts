/**
 * Values between the process of a program and its judge, as JSON: Python's own plain values are
 * copies, and any other object is a number under which its process keeps it.
 *
 * The reader makes each value anew, of Python's own classes only. So no method of a program's
 * object runs in the judge.
 */

/** `encode(peer, value)`, `decode(peer, value)`, `restore(own, now)`, `is_changeable(value)`. */
export const pythonValues: string = `
import collections, datetime, decimal, fractions

DEEPEST = 1000
MOMENTS = {one.__name__: one for one in (datetime.date, datetime.datetime, datetime.time)}
SEQUENCES = {"l": list, "t": tuple, "S": set, "F": frozenset}
MAPPINGS = {"d": dict, "O": collections.OrderedDict, "C": collections.Counter}
LETTERS = {kind: letter for letter, kind in (SEQUENCES | MAPPINGS).items()} | {collections.defaultdict: "d"}
# What a value of a derived class is beneath, read by the methods of Python's own class.
BENEATH = ((bool, bool), (int, int.__int__), (float, float.__float__), (str, str.__str__), (bytes, lambda value: bytes(memoryview(value))),
           (list, lambda value: list(list.__iter__(value))), (tuple, lambda value: tuple(tuple.__iter__(value))),
           (dict, lambda value: dict(dict.items(value))), (set, lambda value: set(set.__iter__(value))),
           (frozenset, lambda value: frozenset(frozenset.__iter__(value))))


def encode(peer, value, depth=0):
    kind = type(value)
    if value is None or kind is bool or kind is str:
        return value
    if kind is int:
        # Python refuses to write long ones as decimals.
        return value if -(1 << 63) < value < 1 << 63 else ["i", hex(value)]
    if kind is float:
        return ["f", repr(value)]
    if depth < DEEPEST:
        letter = LETTERS.get(kind)
        if letter in SEQUENCES:
            return [letter, [encode(peer, one, depth + 1) for one in value]]
        if letter in MAPPINGS:
            return [letter, [[encode(peer, key, depth + 1), encode(peer, one, depth + 1)] for key, one in dict.items(value)]]
        known = encode_rare(peer, value, kind, depth)
        if known is not None:
            return known
    if isinstance(value, type(collections)):
        return ["m", value.__name__, peer.keep(value)]
    if isinstance(value, type) and issubclass(value, Exception):
        return ["e", encode_class(peer, value)]
    if type(value) is Remote:
        return ["o", value.__dict__["<number>"]]
    beneath = next((plain(value) for base, plain in BENEATH if isinstance(value, base)), None) if depth < DEEPEST else None
    return ["h", peer.keep(value), encode(peer, beneath, depth + 1)]


def encode_rare(peer, value, kind, depth):
    if kind is collections.deque:
        return ["q", [encode(peer, one, depth + 1) for one in value], value.maxlen]
    if kind is bytes or kind is bytearray:
        return ["b" if kind is bytes else "B", value.hex()]
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
    if kind in SEQUENCES:
        return SEQUENCES[kind]([decode(peer, one) for one in rest[0]])
    if kind in MAPPINGS:
        return MAPPINGS[kind]({decode(peer, key): decode(peer, one) for key, one in rest[0]})
    if kind == "q":
        return collections.deque([decode(peer, one) for one in rest[0]], rest[1])
    if kind == "b" or kind == "B":
        return (bytes if kind == "b" else bytearray).fromhex(rest[0])
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
    if kind == "h":
        return peer.remote(int(rest[0]), decode(peer, rest[1]))
    raise ValueError(f"there is no kind {kind!r}")


def is_changeable(value):
    return isinstance(value, (list, dict, set, bytearray, tuple, collections.deque))


def restore(own, now):
    """Arguments are copies: what a function did to them is done to the caller's, which stay the objects that they are."""
    if type(own) is not type(now):
        return
    if isinstance(own, (list, tuple)) and len(own) == len(now):
        for index, (before, after) in enumerate(zip(own, now)):
            if is_changeable(before) and type(before) is type(after):
                restore(before, after)
            elif isinstance(own, list):
                own[index] = after
    elif isinstance(own, (list, bytearray)):
        own[:] = now
    elif isinstance(own, dict):
        for key in [key for key in own if key not in now]:
            del own[key]
        for key, after in now.items():
            if is_changeable(own.get(key)) and type(own[key]) is type(after):
                restore(own[key], after)
            else:
                own[key] = after
    elif isinstance(own, (set, collections.deque)):
        own.clear()
        (own.update if isinstance(own, set) else own.extend)(now)
`;
