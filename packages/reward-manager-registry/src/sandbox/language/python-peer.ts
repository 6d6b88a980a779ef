/**
 * The protocol between the process of a program and its judge: lines of JSON over file descriptor
 * 3, one request at a time, with requests back while one is answered. Both sides run this text;
 * `answers` has a side's operations, and the judge has very few.
 */

import { pythonValues } from "./python-values.ts";

/**
 * `Peer(answers)`: `ask(op, *values)`, and `serve()` until the other side is gone. `Remote`: a
 * proxy of an object of the other side.
 */
export const pythonPeer: string = `
import builtins, json, operator, os, sys, traceback
${pythonValues}

class Unanswered(BaseException):
    """The other side is gone, or says what makes no sense."""


class Peer:
    def __init__(self, answers):
        self.answers, self.kept, self.numbers, self.remotes, self.classes = answers, [], {}, {}, {}
        self.source, self.sink = os.fdopen(3, "rb", closefd=False), os.fdopen(os.dup(3), "wb")

    def send(self, message):
        self.sink.write(json.dumps(message, separators=(",", ":")).encode() + b"\\n")
        self.sink.flush()

    def receive(self):
        try:
            line = self.source.readline()
            return json.loads(line) if line.endswith(b"\\n") else None
        except (OSError, ValueError, RecursionError):
            return None

    def serve(self):
        while (message := self.receive()) is not None:
            self.answer(message)

    def ask(self, op, *values, changed=()):
        try:
            self.send(["?", op, [encode(self, one) for one in values]])
        except OSError as error:
            raise Unanswered("the program is gone") from error
        while True:
            message = self.receive()
            if message is None:
                raise Unanswered("the program ended before it answered")
            if isinstance(message, list) and message[:1] == ["?"]:
                self.answer(message)
                continue
            try:
                failure, value = self.outcome(op, message, changed)
            except Exception as error:
                raise Unanswered(f"the program answered what cannot be read: {error!r}") from None
            if failure is None:
                return value
            raise failure

    def outcome(self, op, message, changed):
        if message[0] == "=":
            for own, now in zip(changed, message[2]):
                restore(own, decode(self, now))
            return None, decode(self, message[1])
        if message[0] != "!":
            raise ValueError(message[0])
        cls, args, text = self.stand_in(message[1]), decode(self, message[2]), str(message[3])
        # One that ends a loop would end the judge's.
        if issubclass(cls, StopIteration) and op != "next":
            cls = RuntimeError
        try:
            failure = cls(*args)
        except Exception:
            failure = RuntimeError(*args)
        sys.stderr.write(text)
        return failure, None

    def answer(self, message):
        try:
            _, op, values = message
            values = [decode(self, one) for one in values]
            result = self.answers[op](*values)
            changed = [encode(self, one) if is_changeable(one) else None for one in values[1]] if op == "call" else []
            self.send(["=", encode(self, result), changed])
        except Unanswered:
            raise
        except BaseException as error:
            text = "".join(traceback.format_exception(type(error), error, error.__traceback__))[-4000:]
            self.send(["!", encode_class(self, type(error)), encode(self, tuple(error.args)), text if op != "next" else ""])

    def keep(self, value):
        if id(value) not in self.numbers:
            self.numbers[id(value)] = len(self.kept)
            self.kept.append(value)
        return self.numbers[id(value)]

    def remote(self, number, beneath):
        if number not in self.remotes:
            self.remotes[number] = Remote(self, number)
        self.remotes[number].__dict__["<beneath>"] = beneath
        return self.remotes[number]

    def module(self, name, number):
        return sys.modules.get(name) or self.remote(number, None)

    def stand_in(self, known):
        """A class of exceptions of the other side, here: of the same name, and derived from the same of Python's own."""
        if isinstance(known, str):
            cls = getattr(builtins, known, None)
            return cls if isinstance(cls, type) and issubclass(cls, Exception) else RuntimeError
        number, name, bases = known
        if number not in self.classes:
            ours = tuple(dict.fromkeys(self.stand_in(one) for one in bases)) or (RuntimeError,)
            self.classes[number] = type(str(name), ours, {})
        return self.classes[number]


class Remote:
    """An object of the other side. What is compared with it is never sent there: it is equal to what it is beneath, or to nothing."""

    def __init__(self, peer, number):
        # Names that no attribute of the other side has.
        self.__dict__.update({"<peer>": peer, "<number>": number, "<beneath>": None})

    def __getattr__(self, name):
        if name.startswith("__") and name.endswith("__"):
            raise AttributeError(name)
        return self.__dict__["<peer>"].ask("get", self, name)

    def __setattr__(self, name, value):
        self.__dict__["<peer>"].ask("set", self, name, value)

    def __call__(self, *args, **kwargs):
        args = list(args)
        return self.__dict__["<peer>"].ask("call", self, args, kwargs, changed=args)

    def __eq__(self, other):
        if type(other) is Remote:
            return other is self or bool(self.__dict__["<peer>"].ask("both", "eq", self, other))
        return self.__dict__["<beneath>"] is not None and self.__dict__["<beneath>"] == other

    def __hash__(self):
        return hash(self.__dict__["<beneath>"]) if self.__dict__["<beneath>"] is not None else self.__dict__["<number>"]

    def __instancecheck__(self, value):
        return type(value) is Remote and self.__dict__["<peer>"].ask("both", "isinstance", value, self)

    def __iter__(self):
        return RemoteIterator(self.__dict__["<peer>"].ask("one", "iter", self))

    def __getitem__(self, key):
        return self.__dict__["<peer>"].ask("item", self, key)

    def __setitem__(self, key, value):
        self.__dict__["<peer>"].ask("put", self, key, value)

    def __delitem__(self, key):
        self.__dict__["<peer>"].ask("drop", self, key)

    def __format__(self, form):
        return format(str(self), form)

    def __enter__(self):
        return self.__dict__["<peer>"].ask("get", self, "__enter__")()

    def __exit__(self, *_):
        self.__dict__["<peer>"].ask("get", self, "__exit__")(None, None, None)


class RemoteIterator:
    def __init__(self, remote):
        self.remote = remote

    def __iter__(self):
        return self

    def __next__(self):
        return self.remote.__dict__["<peer>"].ask("next", self.remote)


def forward():
    def alone(name):
        return lambda self: self.__dict__["<peer>"].ask("one", name, self)

    def together(name):
        def method(self, other):
            if self.__dict__["<beneath>"] is not None:
                return getattr(operator, name)(self.__dict__["<beneath>"], other)
            if type(other) is not Remote:
                return NotImplemented
            return self.__dict__["<peer>"].ask("both", name, self, other)
        return method

    for name in ALONE:
        setattr(Remote, f"__{name}__", alone(name))
    for name in TOGETHER:
        setattr(Remote, f"__{name.rstrip('_')}__", together(name))


ALONE = ("len", "str", "repr", "bool", "int", "float", "index", "abs", "neg", "round", "reversed")
# Between two objects of the program: with a value of the judge's it would hear what is expected.
TOGETHER = ("lt", "le", "gt", "ge", "add", "sub", "mul", "truediv", "floordiv", "mod", "matmul", "and_", "or_", "xor")
forward()
`;
