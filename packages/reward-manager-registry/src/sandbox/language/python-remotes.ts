/**
 * Proxies of objects that another process keeps, in Python. A class of the other side becomes a
 * class here, so that `type(x) is A` and `type(x).__name__` hold, and has the operators that the
 * class has there, and no others.
 *
 * The judge's side is guarded: a program's object must not hear what it is compared with. It is
 * equal to what it is beneath (a class derived from int or list), or to an object of the program
 * where that says so, and to no plain value.
 */

/** `Remote`, `RemoteClass`, `place_of(value)`, `operators_of(kind)`, `is_remote(value)`. */
export const pythonRemotes: string = `
import itertools, operator, types

ALONE = {"len", "str", "repr", "bool", "int", "float", "complex", "index", "abs", "neg", "pos", "invert", "reversed", "iter", "hash"}
ORDERS = {"lt", "le", "gt", "ge"}
ARITHMETIC = {"add", "sub", "mul", "truediv", "floordiv", "mod", "matmul", "pow", "lshift", "rshift", "and", "or", "xor"}
IN_PLACE = {"i" + name for name in ARITHMETIC}
REFLECTED = {"r" + name for name in ARITHMETIC}
OTHERS = {"eq", "next", "call", "contains", "getitem", "setitem", "delitem", "enter", "exit", "round", "format"}
# What numbers have: nothing of this comes from an object that heard a value of the test.
OF_NUMBERS = {"bool", "int", "float", "complex", "index", "abs", "len", "hash", "round"}
SHOWN = {"__name__", "__qualname__", "__doc__", "__members__", "__annotations__", "__dataclass_fields__", "__wrapped__", "__defaults__"}
KINDS = {one.__name__: one for one in (types.GeneratorType, types.FunctionType, types.MethodType, types.CoroutineType)}
SCALARS = (bool, int, float, str, bytes)


def operators_of(kind):
    names = ALONE | ORDERS | ARITHMETIC | IN_PLACE | REFLECTED | OTHERS
    own = [name for name in sorted(names) if getattr(kind, f"__{name}__", None) not in (None, getattr(object, f"__{name}__", None))]
    return own if kind.__hash__ is not None else [*own, "unhashable"]


class Place:
    """Where a Remote's object is: its number there, what it is beneath; whether it heard a value of the test, and whether the test made it.

    What the test made is the program's as soon as the program gives it for anything else: a method may answer with its own object."""

    __slots__ = ("peer", "number", "beneath", "heard", "called", "given", "length")

    def __init__(self, peer, number):
        self.peer, self.number, self.beneath, self.heard, self.called, self.given = peer, number, None, False, False, False
        self.length = None, 0

    @property
    def made(self):
        return self.called and not self.given

    def unfit(self, remote, what):
        """What the test does with an object that it made of a class that it names is the test's. A result of the program may be the program's fault."""
        if self.made and self.peer.may_hear(remote, None):
            self.peer.note(what)


PLACES = {}


def is_remote(value):
    return isinstance(type(value), RemoteClass) or type(value) is RemoteClass


def place_of(value):
    return PLACES[value] if type(value) is RemoteClass else PLACE.__get__(value)


def ask(remote, op, *values):
    return place_of(remote).peer.ask(op, remote, *values)


def attribute(remote, name):
    if name.startswith("__") and name.endswith("__") and name not in SHOWN:
        raise AttributeError(name)
    return ask(remote, "get", name)


def call(remote, args, kwargs):
    return ask(remote, "call", args, tuple(kwargs.items()))


def contains(remote, value):
    place = place_of(remote)
    if place.beneath is not None:
        return value in place.beneath
    if is_remote(value) or not place.peer.guarded or place.made and place.peer.may_hear(remote, value):
        return bool(place.peer.ask("both", "contains", remote, value))
    return any(one is value or one == value for one in remote)


class RemoteClass(type):
    def __new__(kind, name, bases, body, made=False):
        if not made:
            base = next(one for one in bases if type(one) is RemoteClass)
            PLACES[base].peer.unfit(f"a class of its own that derives from {base.__name__}")
        return super().__new__(kind, name, bases, body)

    def __init__(self, name, bases, body, made=False):
        super().__init__(name, bases, body)

    __getattr__ = attribute
    __contains__ = contains

    def __setattr__(self, name, value):
        ask(self, "set", name, value)

    def __delattr__(self, name):
        ask(self, "unset", name)

    def __call__(self, *args, **kwargs):
        made = call(self, args, kwargs)
        if isinstance(type(made), RemoteClass):
            PLACE.__get__(made).called = True
        return made

    def __instancecheck__(self, value):
        return type(value) is self or is_remote(value) and bool(place_of(value).peer.ask("both", "isinstance", value, self))

    def __subclasscheck__(self, other):
        return other is self or is_remote(other) and bool(place_of(other).peer.ask("both", "issubclass", other, self))

    def __iter__(self):
        return ask(self, "iter")

    def __len__(self):
        return ask(self, "one", "len")

    def __bool__(self):
        return True

    def __getitem__(self, key):
        return ask(self, "item", key)

    def __repr__(self):
        return ask(self, "one", "repr")


class Remote(metaclass=RemoteClass, made=True):
    __slots__ = ("_Remote__place",)
    __getattr__ = attribute

    def __setattr__(self, name, value):
        ask(self, "set", name, value)

    def __delattr__(self, name):
        ask(self, "unset", name)

    @property
    def __dict__(self):
        return ask(self, "get", "__dict__")

    @property
    def __class__(self):
        kind, beneath = type(self), PLACE.__get__(self).beneath
        return type(beneath) if beneath is not None else KINDS.get(kind.__name__, kind)

    def __copy__(self):
        return ask(self, "copy")

    def __deepcopy__(self, _):
        return ask(self, "deepcopy")

    def __reduce_ex__(self, _):
        PLACE.__get__(self).peer.unfit(f"pickling {type(self).__name__}")

    def __eq__(self, other):
        place = PLACE.__get__(self)
        if other is self:
            return True
        if is_remote(other) or not place.peer.guarded:
            has_own = hasattr(type(self), "__own_eq__") or hasattr(type(other), "__own_eq__")
            return bool(place.peer.ask("both", "eq", self, other)) if has_own or place.beneath is not None else NotImplemented
        if hasattr(type(self), "__own_eq__") and isinstance(other, SCALARS):
            place.unfit(self, f"asking a {type(self).__name__} of the program whether it is equal to a plain value")
        return place.beneath is not None and place.beneath == other

    def __hash__(self):
        beneath = PLACE.__get__(self).beneath
        return hash(beneath) if beneath is not None else PLACE.__get__(self).number

    def __str__(self):
        return ask(self, "one", "str")

    def __repr__(self):
        return ask(self, "one", "repr")

    def __format__(self, form):
        return format(str(self), form)


PLACE = Remote.__dict__["_Remote__place"]


def alone(name):
    def method(self):
        place = PLACE.__get__(self)
        if place.heard and name in OF_NUMBERS:
            raise TypeError(f"{name} of an object of the program that heard a value of the test")
        if name == "hash" and place.beneath is not None:
            return hash(place.beneath)
        result = place.peer.ask("one", self, name)
        if name == "len":
            place.length = result, place.peer.changing
        return heard(result) if place.heard else result
    return method


def heard(result):
    if isinstance(type(result), RemoteClass):
        PLACE.__get__(result).heard = True
    return result


def together(name, is_reflected=False):
    operation = {"and": "and_", "or": "or_"}.get(name, name)

    def method(self, other, *_):
        place = PLACE.__get__(self)
        if place.beneath is not None:
            pair = (other, place.beneath) if is_reflected else (place.beneath, other)
            return getattr(operator, operation)(*pair)
        pair = (other, self) if is_reflected else (self, other)
        if is_remote(other) or not place.peer.guarded:
            given = place.given
            result = place.peer.ask("both", operation, *pair)
            if name in IN_PLACE and result is self:
                place.given = given
            return heard(result) if place.heard or is_remote(other) and place_of(other).heard else result
        if not place.peer.may_hear(self, other):
            return NotImplemented
        told = f"{name} of a {type(self).__name__} of the program and a plain value"
        if name in ORDERS:
            place.unfit(self, told)
            return NotImplemented
        result = place.peer.ask("both", operation, *pair)
        if not place.made and (not isinstance(type(result), RemoteClass) or PLACE.__get__(result).beneath is not None):
            raise TypeError(f"the judge takes no plain result of {told}")
        return heard(result)
    return method


def method_of(name):
    if name in ALONE:
        return alone(name)
    if name in ORDERS or name in ARITHMETIC:
        return together(name)
    if name in REFLECTED:
        return together(name[1:], True)
    if name in IN_PLACE:
        return together(name)
    return METHODS.get(name)


def counted(begin):
    """One that is as long as is expected, and empty in a loop, would pass a loop of comparisons."""
    def method(self):
        place, items = PLACE.__get__(self), begin(self)
        if not place.peer.guarded or place.made or "__len__" not in type.__dict__["__dict__"].__get__(type(self)):
            return items
        (before, moment), length = place.length, len(self)
        items = list(itertools.islice(items, length + 1))
        if len(items) != length or moment == place.peer.changing and before not in (None, length):
            raise TypeError(f"a {type(self).__name__} of the program gives not as many items as it has")
        return iter(items)
    return method


def rounded(self, *digits):
    if PLACE.__get__(self).heard:
        raise TypeError("round of an object of the program that heard a value of the test")
    return ask(self, "round", *digits)


METHODS = {
    "next": lambda self: ask(self, "next"),
    "call": lambda self, *args, **kwargs: call(self, args, kwargs),
    "contains": contains,
    "getitem": lambda self, key: ask(self, "item", key),
    "setitem": lambda self, key, value: ask(self, "put", key, value),
    "delitem": lambda self, key: ask(self, "drop", key),
    "enter": lambda self: ask(self, "enter"),
    "exit": lambda self, kind, error, _: ask(self, "exit", kind, () if error is None else error.args),
    "round": rounded,
    "format": lambda self, form: ask(self, "format", form),
    "eq": Remote.__eq__,
}
COUNTED = {"iter": counted(lambda self: ask(self, "iter")), "reversed": counted(lambda self: ask(self, "one", "reversed"))}


def remote_class(peer, number, name, operators):
    body = {"__slots__": (), "__module__": "__main__", "__doc__": property(lambda self: ask(self, "get", "__doc__"))}
    for one in operators:
        method = COUNTED.get(str(one)) or method_of(str(one))
        if method is not None:
            body[f"__{one}__"] = method
    if "eq" in operators:
        body["__own_eq__"] = True
        body.setdefault("__hash__", Remote.__hash__)
    if "unhashable" in operators:
        body["__hash__"] = None
    cls = RemoteClass(str(name), (Remote,), body, made=True)
    PLACES[cls] = Place(peer, number)
    return cls


def remote_object(cls, peer, number):
    remote = object.__new__(cls)
    PLACE.__set__(remote, Place(peer, number))
    return remote
`;
