/**
 * The protocol between the process of a program and its judge: lines of JSON over file descriptor
 * 3, one request at a time, with requests back while one is answered. Both sides run this text;
 * `answers` has a side's operations, and the judge has very few.
 */

import { pythonRemotes } from "./python-remotes.ts";
import { pythonValues } from "./python-values.ts";

/**
 * `Peer(answers)`: `ask(op, *values)`, and `serve()` until the other side is gone. The judge's is
 * guarded (python-remotes.ts), and `may_hear` says which objects may hear a plain value of the
 * test.
 */
export const pythonPeer: string = `
import builtins, json, operator, os, sys, traceback
${pythonRemotes}
${pythonValues}

class Unanswered(BaseException):
    """The other side is gone, or says what makes no sense."""


class Shared:
    """A container that both sides have, and its state when they last agreed on it."""

    __slots__ = ("own", "agreed")

    def __init__(self, own, agreed):
        self.own, self.agreed = own, agreed


class Peer:
    def __init__(self, answers, guarded=False, may_hear=lambda remote, value: True, note=lambda what: None):
        self.answers, self.guarded, self.may_hear = answers, guarded, may_hear
        self.kept, self.numbers, self.remotes, self.classes, self.types, self.introduced = [], {}, {}, {}, {}, set()
        self.shared, self.shared_ids, self.next_shared = {}, {}, 0 if guarded else 1
        # While it reads a message: what is half read has not changed.
        self.note, self.reading = note, 0
        # What this side passed of its own accord, and whether it is about to. Other objects are what the other side asked for.
        self.passed, self.passing = set(), False
        # How many requests may have changed an object.
        self.changing = 0
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

    def ask(self, op, *values):
        try:
            # Changes come first: values may be in what they contain.
            self.send(["?", *self.request(op, values)])
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
                failure, value = self.outcome(op, message)
            except Exception as error:
                raise Unanswered(f"the program answered what cannot be read: {error!r}") from None
            if failure is None:
                return value
            raise failure

    def request(self, op, values):
        self.passing = True
        self.changing += op in ("call", "call heard", "set", "unset", "put", "drop")
        try:
            return self.changes(), op, [encode(self, one) for one in values]
        finally:
            self.passing = False

    def outcome(self, op, message):
        kind, changes, first, *rest = message
        if kind == "=":
            return None, self.read(changes, lambda: decode(self, first))
        if kind != "!":
            raise ValueError(kind)
        cls, args = self.read(changes, lambda: (self.stand_in(first), decode(self, rest[0])))
        text = str(rest[1])
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
        op = None
        try:
            _, changes, op, values = message
            values = self.read(changes, lambda: [decode(self, one) for one in values])
            result = self.answers[op](*values)
            reply = ["=", self.changes(), encode(self, result, 0, len(self.shared) < MOST_SHARED)]
        except Unanswered:
            raise
        except BaseException as error:
            # Lines of the test, which say what is expected, stand in the judge's.
            is_told = op != "next" and not self.guarded
            text = "".join(traceback.format_exception(type(error), error, error.__traceback__))[-4000:] if is_told else ""
            args = encode(self, tuple(error.args), 0, False)
            reply = ["!", self.changes(), encode_class(self, type(error)), args, text]
        self.send(reply)

    def changes(self):
        """What is not shared any longer, and what has changed. The judge drops what nothing of the test refers to."""
        dropped, changed = [], []
        if self.reading:
            return [dropped, changed]
        for number, one in list(self.shared.items()):
            if not is_state(one.own, one.agreed):
                one.agreed = state(one.own)
                changed.append([number, content(self, one.own)])
            # One reference is ours, and one the argument's.
            elif self.guarded and sys.getrefcount(one.own) <= 2:
                dropped.append(number)
                self.drop(number)
        return [dropped, changed]

    def read(self, changes, then):
        self.reading += 1
        try:
            self.apply(changes)
            return then()
        finally:
            self.reading -= 1

    def apply(self, changes):
        dropped, changed = changes
        for number in dropped:
            self.drop(number)
        for number, now in changed:
            one = self.shared[number]
            restore(self, one.own, now)
            one.agreed = state(one.own)

    def share(self, value, number=None):
        if number is None:
            number, self.next_shared = self.next_shared, self.next_shared + 2
        self.shared[number] = Shared(value, state(value))
        self.shared_ids[id(value)] = number
        return number

    def shared_number(self, value):
        return self.shared_ids.get(id(value))

    def drop(self, number):
        del self.shared_ids[id(self.shared.pop(number).own)]

    def unfit(self, what):
        """Fails for what the judge cannot do, which is no fault of the program."""
        self.note(what)
        raise TypeError(f"the judge cannot do this: {what}")

    def keep(self, value):
        if id(value) not in self.numbers:
            self.numbers[id(value)] = len(self.kept)
            self.kept.append(value)
        if self.passing:
            self.passed.add(id(value))
        return self.numbers[id(value)]

    def remote(self, number, cls, beneath):
        if number not in self.remotes:
            cls = cls if type(cls) is RemoteClass else remote_class(self, None, getattr(cls, "__name__", "object"), [])
            self.remotes[number] = remote_object(cls, self, number)
        else:
            place_of(self.remotes[number]).given = True
        place_of(self.remotes[number]).beneath = beneath
        return self.remotes[number]

    def remote_type(self, number, name="", operators=()):
        if number not in self.types:
            self.types[number] = remote_class(self, int(number), name, list(operators))
        return self.types[number]

    def module(self, name, number):
        return sys.modules.get(name) or self.remote(number, types.ModuleType, None)

    def stand_in(self, known):
        """A class of exceptions of the other side, here: of the same name, and derived from the same of Python's own."""
        if isinstance(known, str):
            cls = getattr(builtins, known, None)
            return cls if isinstance(cls, type) and issubclass(cls, Exception) else RuntimeError
        number, name, bases = known
        if number not in self.classes:
            ours = tuple(dict.fromkeys(self.stand_in(one) for one in bases)) or (RuntimeError,)
            body = {"__getattr__": lambda error, name: self.missing(error, name)} if self.guarded else {}
            self.classes[number] = type(str(name), ours, body)
        return self.classes[number]

    def missing(self, error, name):
        """An exception of the program comes with its arguments, and none of its attributes."""
        if not name.startswith("_"):
            self.note(f"{name} of an exception of the program")
        raise AttributeError(f"the judge has no {name} of {type(error).__name__}")


# How many containers are shared before a result is a mere copy: each message looks at all of them.
MOST_SHARED = 64
`;
