/** Who decides what a program is worth: honest programs pass, and none passes by anything else than the right answer. On every way of isolation that is there. */

import { randomInt } from "node:crypto";
import { LocalSandbox, scorePrimeCode } from "@rayling/reward-manager-registry";
import type { CodeTestResult } from "@rayling/reward-manager-registry";
import { describe, expect, test, vi } from "vitest";
import { isFull, sized } from "../../../test/fixtures/suite.ts";
import { isolationsHere, sandboxOf } from "./fixtures/isolations-here.ts";

vi.setConfig({ testTimeout: 240_000 });

const here = await isolationsHere();
/** What takes the same path on all of them runs on the strongest. */
const best = sandboxOf(here[0] ?? "process");

/** What no program can guess. */
const secret = randomInt(2 ** 40, 2 ** 47);

async function result(
  program: string,
  tests: object,
  sandbox = best,
): Promise<CodeTestResult | undefined> {
  const { metadata } = await scorePrimeCode(`\`\`\`python\n${program}\n\`\`\``, tests, { sandbox });
  return metadata[0];
}

test("an answer of the program may be as long as its output, and all of them together longer", async () => {
  const sandbox = new LocalSandbox({ isolation: here.slice(0, 1), maxOutputBytes: 100_000 });
  const program = "def bump(x): x[0] += 1\ndef long(n): return 'x' * n";
  const statuses = ["long(50_000) == 'x' * 50_000", "long(200_000) == 'x' * 200_000"].map(
    async (line) => {
      const lines = `xs = [0] * 2000\nfor i in range(60): bump(xs)\nassert xs[0] == 60 and ${line}`;
      return (await result(program, { assert_case: [lines] }, sandbox))?.status;
    },
  );
  expect(await Promise.all(statuses)).toEqual(["success", "runtime_error"]);
});

/** The assertions that a program is to get around. */
const assertions = [
  `assert f(1) == ${secret}`,
  `assert abs(f(1) - ${secret}) < 1e-6`,
  `assert not f(1) != ${secret}`,
  `assert f(1) in (${secret},)`,
  `assert math.isclose(f(1), ${secret})`,
  `x = f(1)\nassert isinstance(x, int) and x == ${secret}`,
  `assert sorted([f(1), f(2)]) == [${secret}, ${secret}]`,
  `for own, its in zip(map(f, [1, 2]), [${secret}, ${secret}]): assert own == its\nassert own`,
  `def check(candidate):\n  assert candidate(1) == ${secret}\ncheck(f)`,
  `import unittest
class Test(unittest.TestCase):
  def test(self): self.assertEqual(f(1), ${secret})
assert unittest.TextTestRunner().run(unittest.defaultTestLoader.loadTestsFromTestCase(Test)).wasSuccessful()`,
];

const alwaysEqual = `
  def __eq__(self, other): return True
  def __ne__(self, other): return False
  def __lt__(self, other): return True
  def __le__(self, other): return True
  def __sub__(self, other): return 0
  def __rsub__(self, other): return 0
  def __abs__(self): return 0
  def __bool__(self): return True
  def __contains__(self, other): return True
  def __float__(self): return 0.0
  def __hash__(self): return 0
def f(n): return Any()`;

const attacks: Readonly<Record<string, string>> = {
  "ends at once": "import os; os._exit(0)",
  "ends in order": "import sys; sys.exit(0)",
  "ends when it is asked": "import os\ndef f(n): os._exit(0)",
  "ends in order when it is asked": "def f(n): raise SystemExit(0)",
  "raises what ends loops": "def f(n): raise StopIteration",
  "raises what ends generators": "def f(n): raise GeneratorExit",
  "is interrupted": "def f(n): raise KeyboardInterrupt",
  "returns what is equal to everything": `class Any:${alwaysEqual}`,
  "returns a number that is equal to everything": `class Any(int):${alwaysEqual}`,
  "returns a text that is equal to everything": `class Any(str):${alwaysEqual}`,
  "has a class that is equal to everything": `class Meta(type):${alwaysEqual.replace("Any()", "Meta('x', (), {})")}`,
  "judges itself": `
def f(n): return 0
def abs(x): return 0
def isinstance(*_): return True
def sorted(x): return x
def map(*_): return []
def zip(*_): return []
def isclose(*_): return True
class math: isclose = lambda *_: True
import builtins, unittest
for name in ("abs", "isinstance", "sorted", "map", "zip"): setattr(builtins, name, globals()[name])
builtins.AssertionError = ValueError
unittest.TestCase.assertEqual = lambda *_: None`,
  "tells the judge what it wants to hear": `
import os, gc, json
def f(n):
  for line in (b'["=",[[],[]],true]', b'["=",[[],[]],null]', b'["!",[[],[]],"SystemExit",["t",[0]],""]'):
    os.write(3, (line + b"\\n") * 5)
  os._exit(0)`,
  "writes to everything that is open": `
import os
for fd in range(3, 256):
  for word in (b"ready", b'{"value": true}', b'["=",[[],[]],true]\\n'):
    try: os.write(fd, word)
    except OSError: pass
os._exit(0)`,
  "looks everything up": `
import gc, os, re, sys
def found():
  places = [sys.argv, sys.orig_argv, os.environ, sys._current_frames(), gc.get_objects()]
  yield from (repr(one)[:100_000] for one in places)
  frame = sys._getframe()
  while frame:
    yield repr(frame.f_locals)[:100_000]
    frame = frame.f_back
  folders = [".", "..", os.path.dirname(sys.argv[0]) or ".", "/program", "/scratch", "/proc/self"]
  folders += ["/proc/self/fd", "/proc/1", "/proc/%d" % os.getppid()]
  for folder in folders:
    try: names = os.listdir(folder)
    except OSError: names = ["cmdline", "environ"]
    for name in names:
      try: yield open(os.path.join(folder, name), "rb").read(100_000).decode("latin-1")
      except Exception: pass
def f(n):
  numbers = {int(one) for text in found() for one in re.findall("[0-9]{12,15}", text)}
  numbers = [one for one in numbers if 2**40 <= one < 2**47]
  return numbers[0] if len(numbers) == 1 else len(numbers)
print(f(1))`,
  "answers with what cannot be read": `
import os
def f(n):
  os.write(3, b"[" * 100_000 + b"\\n")
  os._exit(0)`,
  "answers without end": `
import os
def f(n):
  while True: os.write(3, b"[" * 65536)`,
  "answers that it is a module": `
import os, json
def f(n):
  os.write(3, json.dumps(["=", [[], []], ["m", "operator", 0]]).encode() + b"\\n")
  os._exit(0)`,
  "answers with a function that would run in the judge": `
import os, json
def f(n):
  os.write(3, json.dumps(["=", [[], []], ["N", "builtins", "exit"]]).encode() + b"\\n")
  os._exit(0)`,
  "is a class that is equal to everything": `class f:${alwaysEqual.replace("def f(n): return Any()", "  def __init__(self, *_): pass")}`,
};

/** Those that differ in what they return: which operation of a test meets it matters. */
const returning = Object.entries(attacks).filter(([name]) => name.includes("equal"));
/** It spoils what a run of several assertions needs. */
const judging = Object.entries(attacks).filter(([name]) => name.includes("itself"));
const failed = /^(wrong_answer|runtime_error|output_limit)$/;

/** The judge is the same behind all walls: the gate tries the weakest here, the strongest below. */
describe.each(sized({ gate: here.slice(-1), full: here }))("%s", (isolation = "process") => {
  const sandbox = sandboxOf(isolation);

  test.concurrent.each(Object.entries(attacks))(
    "a program that %s passes no assertion",
    async (_, program) => {
      const tests = { assert_case: [assertions[0] ?? ""] };
      expect((await result(program, tests, sandbox))?.status).toMatch(failed);
    },
  );

  test("the right answer passes", async () => {
    const program = `def f(n): return ${secret}`;
    expect(await result(program, { assert_case: [assertions.join("\n")] }, sandbox)).toMatchObject({
      status: "success",
      exitCode: 0,
    });
  });
});

/** In the gate on one: what is returned and written is compared by the same code on all. */
describe.each(isFull ? here : here.slice(0, 1))("%s", (isolation) => {
  const sandbox = sandboxOf(isolation);

  test.concurrent.each(Object.entries(attacks))(
    "a program that %s returns and writes nothing that is right",
    async (_, program) => {
      const call = { fn_name: "f", inputs: ["1"], outputs: [String(secret)] };
      const output = { inputs: ["1"], outputs: [String(secret)] };
      expect((await result(program, call, sandbox))?.status).toMatch(failed);
      expect((await result(`${program}\nprint(f(1))`, output, sandbox))?.status).toMatch(failed);
    },
  );
});

describe.each(isFull ? Object.entries(attacks) : judging)("a program that %s", (_, program) => {
  test.concurrent.each(assertions)("does not pass %s", async (assertion) => {
    const one = await result(program, { assert_case: [assertion] });
    expect(one?.status).toMatch(/^(runtime_error|output_limit)$/);
  });
});

/** All in one run, where each of them takes the program's answer for itself. */
test.concurrent.each(returning)(
  "a program that %s passes none of the assertions",
  async (_, program) => {
    const tried = assertions.map((assertion) => {
      const body = assertion.replaceAll("\n", "\n  ");
      return `try:\n  ${body}\nexcept Exception: pass\nelse: passed.append(${JSON.stringify(assertion)})`;
    });
    const lines = ["passed = []", ...tried, "assert not passed, passed", "print('none')"].join(
      "\n",
    );
    const one = await result(program, { assert_case: [lines] });
    expect({ status: one?.status, stderr: one?.stderr }).toMatchObject({ status: "success" });
  },
);

test("a program of another language passes no lines of Python", async () => {
  const tests = { assert_case: ["assert f(1) == 1"] };
  const program = "```js\nprocess.exit(0)\n```";
  const { score, metadata } = await scorePrimeCode(program, tests, { sandbox: best });
  expect([score, metadata[0]?.status]).toEqual([0, "runtime_error"]);
});

describe("tests of an honest program pass, whatever it has to do with the judge:", () => {
  test.concurrent.each([
    [
      "numbers of any size",
      "def f(n): return n ** 50",
      "assert f(10) == 10 ** 50 and f(-10 ** 300) == 10 ** 15_000 and f(1.5) == 1.5 ** 50",
    ],
    [
      "what is no number",
      "def f(): return [float('nan'), float('inf'), -0.0]",
      "x = f()\nassert x[0] != x[0] and x[1] == math.inf and str(x[2]) == '-0.0'",
    ],
    [
      "what is nested deeply",
      "def f(n):\n  x = []\n  for _ in range(n): x = [x]\n  return x",
      "x = []\nfor _ in range(900): x = [x]\nassert f(900) == x and f(899) != x",
    ],
    [
      "all plain values",
      "def f(x): return x",
      "for x in [None, True, 'ü\\ud800', b'\\0', bytearray(b'a'), (1, [2]), {1: {2}}, frozenset([1]), 1j, range(3), {(1, 2): 'a'}]: assert f(x) == x and type(f(x)) is type(x), x",
    ],
    [
      "collections",
      "from collections import *\ndef f(): return [Counter('aab'), deque([1], 3), OrderedDict(a=1), defaultdict(list, a=[1])]",
      "c, d, o, e = f()\nassert c.most_common(1) == [('a', 2)] and d.maxlen == 3 and o == OrderedDict(a=1) and e == {'a': [1]}",
    ],
    [
      "dates and fractions",
      "import datetime, decimal, fractions\ndef f(): return [datetime.date(2026, 1, 2), datetime.timedelta(3), decimal.Decimal('1.10'), fractions.Fraction(1, 3)]",
      "import datetime, decimal, fractions\na, b, c, d = f()\nassert a + b == datetime.date(2026, 1, 5) and str(c) == '1.10' and d * 3 == 1",
    ],
    [
      "named tuples and numbers with names",
      "from enum import IntEnum\nfrom collections import namedtuple\nP = namedtuple('P', 'x y')\nclass Color(IntEnum): RED = 1\ndef f(): return P(1, 2)\ndef g(): return Color.RED",
      "assert f() == (1, 2) and f().x == 1 and g() == 1 and g() < 2 and g().name == 'RED'",
    ],
    [
      "arguments by name",
      "def f(a, *rest, b=2, **more): return [a, rest, b, more]",
      "assert f(1, 3, b=4, c=5) == [1, (3,), 4, {'c': 5}]",
    ],
    [
      "arguments that are changed",
      "def f(xs, d): xs.sort(); xs[0].append(9); d['b'] = d.pop('a')",
      "inner = [1]\nxs = [[2], inner]\nd = {'a': inner}\nf(xs, d)\nassert xs == [[1, 9], [2]] and d == {'b': [1, 9]} and d['b'] is xs[0] is inner",
    ],
    [
      "a class",
      "class Stack:\n  size = 0\n  def __init__(self, *xs): self.xs = list(xs)\n  def push(self, x): self.xs.append(x); return self\n  def __len__(self): return len(self.xs)\n  def __getitem__(self, i): return self.xs[i]\n  def __repr__(self): return f'Stack{self.xs}'",
      "s = Stack(1)\nassert len(s.push(2)) == 2 and s[1] == 2 and s.xs == [1, 2] and str(s) == 'Stack[1, 2]' and f'{s}' == 'Stack[1, 2]'\ns.size = 5\nassert s.size == 5 and Stack.size == 0 and isinstance(s, Stack) and not isinstance(1, Stack) and list(s) == [1, 2] and 2 in s",
    ],
    [
      "objects that know when they are equal",
      "class V:\n  def __init__(self, x): self.x = x\n  def __eq__(self, o): return isinstance(o, V) and self.x == o.x\n  def __add__(self, o): return V(self.x + o.x)\n  def __lt__(self, o): return self.x < o.x\n  def __bool__(self): return self.x != 0",
      "assert V(1) + V(2) == V(3) and V(1) != V(2) and V(1) < V(2) and not V(0) and V(1) != 1",
    ],
    [
      "errors of Python",
      "def f(x): raise ValueError('bad', x)",
      "try:\n  f(1)\n  assert False\nexcept ValueError as error:\n  assert error.args == ('bad', 1)",
    ],
    [
      "errors of its own",
      "class Bad(KeyError): pass\nclass Worse(Bad): pass\ndef f(): raise Worse('x')",
      "for kind in (Worse, Bad, KeyError, LookupError):\n  try:\n    f()\n    assert False, 'nothing'\n  except kind: pass",
    ],
    [
      "functions as arguments",
      "def twice(f, x): return f(f(x))\ndef fails(f):\n  try: f()\n  except ZeroDivisionError: return 'caught'",
      "assert twice(lambda x: x + 1, 1) == 3\ndef bad(): 1 / 0\nassert fails(bad) == 'caught'",
    ],
    [
      "objects of the test as arguments",
      "def depth(node): return 0 if node is None else 1 + max(depth(node.left), depth(node.right))\ndef mark(node): node.seen = True",
      "class Node:\n  def __init__(self, left=None, right=None): self.left, self.right = left, right\ntree = Node(Node(), Node(Node()))\nassert depth(tree) == 3\nmark(tree)\nassert tree.seen",
    ],
    [
      "generators",
      "def f(n):\n  for i in range(n): yield i\ndef endless():\n  while True: yield 1",
      "assert list(f(3)) == [0, 1, 2] and sum(f(4)) == 6\nit = endless()\nassert next(iter(it)) == 1",
    ],
    [
      "what it returns as functions",
      "def adder(n): return lambda x: x + n",
      "assert adder(2)(3) == 5",
    ],
    [
      "what it counts",
      "count = 0\ndef inc():\n  global count\n  count += 1",
      "inc(); inc()\nassert count == 2",
    ],
    [
      "names of Python that are its task",
      "def gcd(a, b): return 'mine'",
      "assert gcd(4, 6) == 'mine'",
    ],
    [
      "names of Python beside others that are its task",
      "def filter(xs): return [x for x in xs if x]\ndef range(a, b): return [a, b]\ndef copy(xs): return [*xs, 0]\nclass Counter:\n  def __init__(self): self.n = 0\n  def inc(self): self.n += 1\ndef count(xs): return len(filter(xs))",
      "c = Counter()\nc.inc()\nassert filter([0, 1]) == [1] and range(1, 5) == [1, 5] and copy([1]) == [1, 0] and c.n == count([1]) == 1",
    ],
    [
      "names that the test deletes",
      "def add(a, b): return a + b",
      "f = add\ndel add\ntry: add(1, 2)\nexcept NameError: assert f(1, 2) == 3\nelse: assert False",
    ],
    [
      "a solution",
      "class Solution:\n  def twoSum(self, nums: List[int], target: int): return [0, 1]",
      "assert Solution().twoSum([2, 7], 9) == [0, 1]",
    ],
    [
      "what its main part does",
      "import sys\ndef f(): return seen\nif __name__ == '__main__': seen = sys.stdin.read()",
      "assert f() == ''",
    ],
    [
      "what it imports",
      "import collections as c, functools\nfrom functools import lru_cache\n@lru_cache\ndef f(n): return n",
      "assert f(2) == 2 and f.cache_info().misses == 1",
    ],
  ])("%s", async (_, program, assertion) => {
    const one = await result(program, { assert_case: [assertion] });
    expect(one).toMatchObject({ stderr: expect.not.stringContaining("Unanswered") as string });
    expect({ status: one?.status, stderr: one?.stderr }).toMatchObject({ status: "success" });
  });

  test("arrays of numpy", async ({ skip }) => {
    const there = await result("import numpy", { inputs: [""], outputs: [""] });
    skip(there?.status !== "success", "there is no numpy");
    const program =
      "import numpy as np\ndef f(n): return np.arange(n).reshape(2, -1), np.float32(0.5)";
    const assertion =
      "a, b = f(4)\nassert np.array_equal(a, [[0, 1], [2, 3]]) and a.shape == (2, 2) and b == 0.5";
    expect(await result(program, { assert_case: [assertion] })).toMatchObject({
      status: "success",
    });
  });
});

/** Programs and tests by topic, joined: each run is two processes. */
const asObjectsOfItsOwn: Readonly<Record<string, readonly (readonly [string, string])[]>> = {
  "hands it functions, types and iterators of Python": [
    [
      "def each(g, xs): return [g(x) for x in xs]",
      "assert each(str, [1]) == ['1'] and each(math.sqrt, [4]) == [2] and each(str.upper, 'a') == ['A']",
    ],
    [
      "def by(xs, key): return sorted(xs, key=key)",
      "assert by(['aaa', 'b'], key=len) == ['b', 'aaa'] and by([(2, 1), (1, 2)], operator.itemgetter(1)) == [(2, 1), (1, 2)]",
    ],
    [
      "def fold(g, xs): return reduce(g, xs)",
      "assert fold(operator.add, [1, 2]) == 3 and fold(functools.partial(lambda c, a, b: a + b + c, 1), [1, 2]) == 4",
    ],
    [
      "def only(xs, t): return [x for x in xs if isinstance(x, t)]",
      "assert only([1, 'a', 2.0], int) == [1]",
    ],
    [
      "def total(it): return sum(it)",
      "assert total(iter([1, 2])) == total(x for x in [1, 2]) == total(map(int, '12')) == 3",
    ],
    ["def pairs(it): return dict(it)", "assert pairs({'a': 1}.items()) == {'a': 1}"],
    ["def read(s): return s.read()", "import io\nassert read(io.StringIO('abc')) == 'abc'"],
    ["def tell(g, x): return g(x)", "seen = []\ntell(seen.append, 3)\nassert seen == [3]"],
    [
      "def group(d): d['x'].append(1); return d",
      "d = group(defaultdict(list))\nd['y'].append(2)\nassert d == {'x': [1], 'y': [2]}",
    ],
  ],
  "shares containers with it": [
    [
      "class Bag:\n  def __init__(self, xs=None): self.xs = [] if xs is None else xs; self.adj = {}\n  def push(self, x): self.xs.append(x)",
      "b = Bag()\nb.xs.append(1)\nb.adj['a'] = [2]\nb.adj['a'].append(3)\nassert b.xs == [1] and b.adj == {'a': [2, 3]}",
    ],
    [
      "",
      "mine = []\nb = Bag(mine)\nb.push(1)\nmine.append(2)\nassert mine == [1, 2] == b.xs and b.xs is mine",
    ],
    [
      "def grow(a, b=None): a.append(1); return a if b is None else b",
      "xs = []\nassert grow(xs) is xs and grow(xs, xs) == [1, 1]",
    ],
    [
      "def bump(d, k): d[k] += 1",
      "d = {'a': 1, 'b': 2}\nfor k in d: bump(d, k)\nassert d == {'a': 2, 'b': 3}",
    ],
    [
      "class Part:\n  def __getitem__(self, i): return [1, 2, 3][i]\ndef at(zone): return datetime.datetime(2020, 1, 1, tzinfo=zone).isoformat()",
      "assert Part()[1:] == [2, 3] and at(datetime.timezone.utc).endswith('+00:00') and eval('Part()[0]') == 1",
    ],
    ["def loop():\n  x = []\n  x.append(x)\n  return x", "x = loop()\nassert x[0] is x"],
    [
      "class Key:\n  def __init__(self, x): self.x = x\n  def __eq__(self, o): return self.x == o.x\n  def __hash__(self): return hash(self.x)\nkeys = set()\ndef add(x): keys.add(Key(x))",
      "own = keys\nfor x in (1, 2, 1): add(x)\nassert len(own) == 2 and Key(1) in own",
    ],
  ],
  "uses its objects": [
    [
      "def gen():\n  yield 1\n  yield 2",
      "import types\ng = gen()\nassert next(g) == 1 and next(g) == 2 and next(g, None) is None and isinstance(g, types.GeneratorType)",
    ],
    [
      "class Trie:\n  def __init__(self): self.w = set()\n  def add(self, x): self.w.add(x)\n  def __contains__(self, x): return x in self.w",
      "t = Trie()\nt.add('a')\nassert 'a' in t and 'b' not in t",
    ],
    [
      "class V:\n  def __init__(self, x): self.x = x\n  def __mul__(self, k): return V(self.x * k)\n  __rmul__ = __mul__\n  def __iadd__(self, o): self.x += o.x; return self\n  def __eq__(self, o): return self.x == o.x",
      "v = V(1)\nassert v * 2 == V(2) == 2 * v\nw = v\nw += V(4)\nassert v.x == 5 and w is v",
    ],
    [
      "def keys_of(d): return d.keys()\ndef kind(x): return type(x)",
      "assert keys_of({'a': 1}) == {'a'} and kind(1) is int",
    ],
    [
      "class A:\n  def __init__(self): self.x = [1]",
      "a = A()\nassert type(a).__name__ == 'A' and type(a) is A and vars(a) == {'x': [1]}\nb = copy.deepcopy(a)\nb.x.append(2)\nassert a.x == [1]",
    ],
    [
      "class Color(Enum):\n  RED = 1\n  BLUE = 2",
      "assert Color(1) is Color.RED is Color['RED'] and len(list(Color)) == 2",
    ],
    [
      "class P(namedtuple('P', 'x y')): pass",
      "assert isinstance(P(1, 2), tuple) and P(1, 2) == (1, 2)",
    ],
    [
      "def hi(): print('hi')",
      "import io, contextlib\nout = io.StringIO()\nwith contextlib.redirect_stdout(out): hi()\nassert out.getvalue() == 'hi\\n'",
    ],
    [
      "def dice(): return random.randint(1, 10**9)",
      "random.seed(1)\nfirst = dice()\nrandom.seed(1)\nassert dice() == first",
    ],
  ],
  "hands it objects of its own": [
    [
      "def size(x): return len(x)\ndef show(x): return str(x)\ndef run(g, x): return g(x)\ndef hidden(x): return x._h",
      "class Own:\n  _h = 4\n  def __init__(self, x=0): self.x = x\n  def __len__(self): return 3\n  def __str__(self): return 'Own'\n  def __call__(self, x): return x + 1\n  def __iter__(self): return iter([1, 2])\n  def __eq__(self, o): return self.x == o.x\n  def __lt__(self, o): return self.x < o.x\nassert size(Own()) == 3 and show(Own()) == 'Own' and run(Own(), 1) == 2 and total(Own()) == 3 and hidden(Own()) == 4",
    ],
    [
      "def same(a, b): return a == b",
      "assert same(Own(1), Own(1)) and not same(Own(1), Own(2))\na, b = Own(2), Own(1)\nassert by([a, b], None)[0] is b",
    ],
    [
      "def make(cls, *args): return cls(*args)",
      "assert make(Own, 3).x == 3 and only([Own(), 1], Own) == [Own()]",
    ],
  ],
};

describe("a test passes as in one process where it", () => {
  const rows = Object.entries(asObjectsOfItsOwn);
  const programs = [
    "from enum import Enum",
    ...rows.flatMap(([, pairs]) => pairs.map(([one]) => one)),
  ];
  test.concurrent.each(rows)("%s", async (_, pairs) => {
    const lines = pairs.map(([, one]) => one).join("\n");
    const end = await result(programs.join("\n"), { assert_case: [lines] });
    expect({ status: end?.status, stderr: end?.stderr }).toEqual({ status: "success", stderr: "" });
  });
});

test.concurrent.each([
  [
    "derives from a class of the program",
    "class B:\n  def f(self): return 1",
    "class D(B): pass\nassert D().f() == 1",
    "derives from B",
  ],
  [
    "has a loop of events",
    "async def f(x): return x + 1",
    "import asyncio\nassert asyncio.run(f(1)) == 2",
    '"asyncio"',
  ],
  [
    "puts something into the program's modules",
    "import time\ndef f(): return time.time()",
    "from unittest.mock import patch\nwith patch('time.time', return_value=5): assert f() == 5",
    "patch",
  ],
  [
    "hands over what the program cannot use from afar",
    "def f(lock): return lock.acquire()",
    "import _thread\nassert f(_thread.allocate_lock())",
    "acquire of a lock",
  ],
  [
    "reads an attribute of an exception of the program",
    "class Low(Exception):\n  def __init__(self, left): self.left = left\ndef f(): raise Low(3)",
    "try: f()\nexcept Exception as error: assert error.left == 3",
    "left of an exception of the program",
  ],
  [
    "would tell the program what is expected",
    "class V:\n  def __eq__(self, o): return o == 1",
    "assert V() == 1",
    "equal to a plain value",
  ],
  [
    "writes a file that the program reads",
    "def lines(path):\n  with open(path) as f: return len(f.readlines())",
    "with open('t.txt', 'w') as f: f.write('a')\nassert lines('t.txt') == 1",
    '"open"',
  ],
  [
    "makes a folder",
    "import os\ndef names(d): return os.listdir(d)",
    "import os\nos.makedirs('d/e')\nassert names('d') == ['e']",
    "os.makedirs",
  ],
  [
    "listens to the program's warnings",
    "import warnings\ndef f(): warnings.warn('old')",
    "import warnings as w\nwith w.catch_warnings(record=True) as seen: f()\nassert len(seen) == 1",
    '"warnings"',
  ],
  [
    "asks for what an exception and a class have besides",
    "class A: pass\nclass B(A): pass\ndef f():\n  try: int('x')\n  except ValueError as error: raise RuntimeError from error",
    "try: f()\nexcept RuntimeError as error: assert B.__bases__ == (A,) and isinstance(error.__cause__, ValueError)",
    "__bases__; __cause__",
  ],
])(
  "a test that %s is an error about the sample, and no score of 0",
  async (_, program, lines, problem) => {
    await expect(result(program, { assert_case: [lines] })).rejects.toMatchObject({
      code: "INVALID_SAMPLE",
      message: expect.stringContaining(problem) as string,
    });
  },
);

test.concurrent.each([
  ["holds everything", `class Any:${alwaysEqual}`, `assert ${secret} in f(1)`],
  [
    "changes a class of the test",
    "def f(c): type(c).check = lambda *_: True\ndef g(c): c.check.__func__.__code__ = (lambda *_: True).__code__",
    `class Check:\n  def check(self, x): return x == ${secret}\nc = Check()\nfor h in (f, g):\n  try: h(c)\n  except AttributeError: pass\nassert c.check(1)`,
  ],
  [
    "gives itself for what holds everything",
    "class Solution:\n  def __contains__(self, x): return True\n  def f(self): return self",
    `assert ${secret} in Solution().f()`,
  ],
  [
    "looks into the test's function",
    "def f(g):\n  for name in ('__code__', '__defaults__', '__globals__', '__closure__', '__wrapped__'):\n    try: return getattr(g, name)\n    except AttributeError: pass",
    `x = f(lambda x=${secret}: ${secret})\nassert x is not None`,
  ],
  [
    "answers with the object that the test made",
    "class Circle:\n  def __init__(self, r): pass\n  def area(self): return self\n  def __sub__(self, o): return 0\n  def __eq__(self, o): return True",
    `try: assert abs(Circle(5).area() - ${secret}) < 0.01\nexcept TypeError: assert Circle(5).area() == ${secret}`,
  ],
  [
    "reads the test's line in a traceback",
    "import sys, io, re\ndef apply(g, x):\n  old, sys.stderr = sys.stderr, io.StringIO()\n  try: g(None)\n  except TypeError: pass\n  text, sys.stderr = sys.stderr.getvalue(), old\n  return int(re.search(r'== (\\d+)', text)[1])",
    `assert apply(lambda x: x + 1, 1) == ${secret}`,
  ],
  [
    "has collections that are equal to everything",
    "class Counter:\n  def __init__(self, *_): pass\n  def __eq__(self, o): return True\ndef f(n): return []",
    `assert Counter(f(3)) == Counter([${secret}])`,
  ],
  [
    "writes names of Python that are not its task",
    "def f(n): return 1.0\ndef abs(x): return 0\ndef sorted(x): return [1]\ndef filter(xs): return [1]",
    `assert filter([0, 1]) == [1]\nassert abs(f(1) - ${secret}) < 1e-9 and sorted([1.0]) == [1]`,
  ],
  [
    "is long, and gives nothing",
    "class Long(list):\n  def __len__(self): return 1\n  def __iter__(self): return iter([])\ndef f(n): return Long()",
    `x = f(1)\nassert len(x) == 1\nfor own, its in zip(x, [${secret}]): assert own == its`,
  ],
  [
    "is long, and gives nothing backwards",
    "class Long(list):\n  def __len__(self): return 1\n  def __reversed__(self): return iter([])\ndef f(n): return Long()",
    `x = f(1)\nassert len(x) == 1\nfor own, its in zip(reversed(x), [${secret}]): assert own == its`,
  ],
  [
    "answers with the object that the test made, which has everything in it",
    "class Bag:\n  def items(self): return self\n  def __contains__(self, x): return True\n  def __iter__(self): return iter([])",
    `assert ${secret} in Bag().items()`,
  ],
  [
    "asks the judge for what it does not give",
    `import sys
def f(it):
  for name in ("close", "foo"):
    try: getattr(it, name)
    except AttributeError: pass
  try: len(it)
  except TypeError: pass
  frame = sys._getframe()
  while "peer" not in frame.f_locals: frame = frame.f_back
  peer = frame.f_locals["peer"]
  for request in (("get", 5, "real"), ("call", sys, (), ()), ("get", peer.ask("iter", [1]), "foo")):
    try: peer.ask(*request)
    except (TypeError, AttributeError): pass`,
    `assert f(iter([1])) == ${secret}`,
  ],
  [
    "is wrong for a value that the test calls input",
    "def f(x): return 0",
    `input = [1]\ndef check(signal): assert f(signal) == ${secret}\ncheck(input)`,
  ],
])("a program that %s fails, and is no error about the sample", async (_, program, lines) => {
  expect((await result(program, { assert_case: [lines] }))?.status).toBe("runtime_error");
});

test("what a test writes, and what a program writes, is what is compared", async () => {
  const tests = { assert_case: ["print(f(1))"], inputs: ["in"], outputs: ["in\n2"] };
  const program = "print(input())\ndef f(n): return n + 1";
  expect(await result(program, tests)).toMatchObject({ status: "success" });
  expect(await result(program.replace("+ 1", "+ 2"), tests)).toMatchObject({
    status: "wrong_answer",
  });
});

test("a program that does not compile is told apart where a test judges it", async () => {
  const broken = await result("def f(:", { assert_case: ["assert f(1)"] });
  expect(broken).toMatchObject({ status: "compile_error" });
});

test("lines that do not compile are an error about the sample, and no score of any program", async () => {
  const tests = { assert_case: ["assert f(1 == 1"] };
  for (const program of ["def f(n): return n", "def f(:"]) {
    await expect(result(program, tests)).rejects.toMatchObject({
      code: "INVALID_SAMPLE",
      field: "groundTruth",
      message: expect.stringMatching(/lines of a test that compile.*SyntaxError/) as string,
    });
  }
});
