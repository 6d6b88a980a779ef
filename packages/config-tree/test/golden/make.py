"""What real Hydra and OmegaConf make of texts, overrides, references and lists of defaults: hydra.json, beside this file.

    python3 -m venv /tmp/hydra && /tmp/hydra/bin/pip install hydra-core==1.3.2
    /tmp/hydra/bin/python packages/config-tree/test/golden/make.py
"""

import json
import math
import os
import random
import tempfile
import warnings
from pathlib import Path

from hydra import compose, initialize_config_dir
from hydra.core.override_parser.overrides_parser import OverridesParser
from hydra.core.override_parser.types import QuotedString
from omegaconf import OmegaConf

warnings.filterwarnings("ignore")
chance = random.Random(20260731)
parser = OverridesParser.create()


def plain(value):
    """JSON has no infinity and no NaN."""
    if isinstance(value, float) and not math.isfinite(value):
        return {"$number": "NaN" if math.isnan(value) else "Infinity" if value > 0 else "-Infinity"}
    if isinstance(value, QuotedString):
        return value.text
    if isinstance(value, list):
        return [plain(one) for one in value]
    if isinstance(value, dict):
        return {name(key): plain(one) for key, one in value.items()}
    return value


def name(key):
    return "null" if key is None else str(key).lower() if isinstance(key, bool) else str(key)


def parsed(text):
    try:
        override = parser.parse_override("a=" + text)
        if override.is_sweep_override():
            return {"text": text, "refused": True}
        return {"text": text, "value": plain(override._value)}
    except Exception:
        return {"text": text, "refused": True}


said = r"""
1|0|-1|+1|1_024|1__0|0125|007|-0|00|1.|.5|1.5|-.5e3|1e-6|1E5|1_0.5|1e|e5|1.2.3|0x10|1,5|inf|-inf|Inf|nan|NaN|info|infinity
true|True|TRUE|tRuE|truefalse|True_x|yes|no|on|off|null|Null|NULL|none|None|nullable|~|~/data
abc|a b|a  b|a b |a-b|a_b|a.b|a/b|/a/b.ts|./a|../a|a+b|a@b|a?b|a|b|a%b|a*b|$a|a$b|a\b|\\|a\\b|C:\dir|a:b|a: b|a : b|http://x:8/v1|s3://b/k|x=y|a#b|a;b|a!b|a&b|a<b|a~b|a^b|a"b|a'b|ä|a_1|1a|1-2|2026-08-01|-a|--a|-|+|.|..|...|*|?|%|@|/|:|::
''|""|'a'|"a"|'a b'|'a,b'|'it\'s'|"it's"|'it"s'|"say \"x\""|'a\\'|'a\\\'b'|'a\b'|'\n'|'1'|"true"|'null'|' a '|'a''b'|'a'b|a'b'|'${y}'|"${y}"|'\${y}'|'[1]'|'
\,|a\,b|a\ b|a\:b|a\=b|a\[b\]|a\{b\}|a\(b\)|a\'b|a\"b|a\nb|\ a|a\ |a\	b|\\\,|a\\,b
[]|[1]|[1,2]|[ 1 , 2 ]|[a,b c]|['a','b']|["a",1,true,null,1.5]|[[1],[2,3]]|[1,]|[,]|[1|1]|[a=b]|[a:b]|[{a:1}]|[${x},b]|[1_0,0125]|['a b',c d]|[/a/b.parquet,/c/d.parquet]
{}|{a:1}|{a: 1}|{a:1,b:2}|{ a : 1 , b : 2 }|{a:{b:{c:1}}}|{a:[1,2]}|{a:'x y'}|{'a':1}|{"a":1}|{a b:1}|{1:2}|{true:1}|{null:1}|{a:b:c}|{a\{b:1}|{a\:b:1}|{a:}|{a}|{:1}|{a:1,}|{a-b:1}|{a.b:1}|{a/b:1}|{$a:1}|{${a}:1}|{a:${b}}|{1.5:a}|{a:1,a:2}
${a}|${a.b}|${a}b|b${a}|${a}${b}|${oc.env:HOME}|${oc.env:X,y}|${a:${b}}|${}|${a|$|${ a }|x/${a}/y
int(1)|int(1.9)|int(-1.9)|int('3')|int(3)|int('x')|int(true)|int(1_0)|float(1)|float('1e3')|float('inf')|str('a')|str(a)|str(true)|str(12)|str(abc def)|bool(1)|bool(0)|bool('true')|bool('FALSE')|bool(x)|bool([1,0])|int([1,'2'])|float({a:1,b:'2'})|int(null)|str()|int(1,2)|choice(1,2)|range(1,5)|interval(0,1)|glob(*)|foo(1)|f (1)|int (2)|int( 2 )|int(value=2)|int(x=2)|str([a,true])|shuffle(1,2)|tag(a,choice(1,2))
"""

pieces = ["a", "b1", "true", "null", "1", "0", "1_0", "1.5", "e5", "inf", "-", "+", ".", "/", "$", "@", " ", "  ", ":", "\\,", "\\ ", "\\\\", "\\[", ",", "=", "[", "]", "{", "}",
          "'", '"', "'x y'", '"z"', "${k}", "(", ")", "a:1", "k: ", "int(", "\\'"]


def values():
    texts = [text for line in said.strip().split("\n") for text in split(line)]
    texts += ["a|b", "a\\|b", " a", "a\t"]
    while len(texts) < 900:
        texts.append("".join(chance.choice(pieces) for _ in range(chance.randint(1, 6))))
    cases = [parsed(text) for text in dict.fromkeys(texts)]
    # A half of random texts are refused: enough of them.
    refused = [case for case in cases if "refused" in case]
    return [case for case in cases if "refused" not in case] + refused[:150]


def split(line):
    return line.split("|")


def tree(depth):
    keys = ["a", "b", "c", "d"]
    return {key: leaf(depth) for key in chance.sample(keys, chance.randint(1, 3))}


def leaf(depth):
    kind = chance.random()
    if depth > 0 and kind < 0.55:
        return tree(depth - 1)
    return chance.choice([1, 2.5, True, None, "x", "y z", [1, 2], [], {}])


def override():
    key = ".".join(chance.choice("abcd") for _ in range(chance.randint(1, 3)))
    sign = chance.choice(["", "", "", "+", "++", "~"])
    value = chance.choice(["1", "x", "null", "[3]", "{a:5}", "{b:{c:6}}", "'1'", "2.5", "[]", "{}", "true"])
    return sign + key + ("" if sign == "~" and chance.random() < 0.7 else "=" + value)


def compositions():
    found = []
    with tempfile.TemporaryDirectory() as folder:
        while len(found) < 400:
            base = tree(2)
            Path(folder, "base.yaml").write_text(OmegaConf.to_yaml(OmegaConf.create(base)))
            overrides = [override() for _ in range(chance.randint(1, 4))]
            try:
                with initialize_config_dir(folder, version_base="1.3"):
                    result = OmegaConf.to_container(compose("base", overrides), resolve=False)
                found.append({"base": base, "overrides": overrides, "result": result})
            except Exception as error:
                if sum("refused" in one for one in found) < 150:
                    found.append({"base": base, "overrides": overrides, "refused": type(error).__name__})
    return found


# YAML 1.1 as PyYAML and OmegaConf read it.
scalars = r"""
yes|Yes|YES|yEs|no|No|NO|on|On|ON|off|Off|OFF|y|Y|n|N|true|True|TRUE|tRue|false|False|FALSE|null|Null|NULL|nULL|~|none|None
0|-0|+0|00|010|-010|+010|08|018|0_8|0o17|0O17|0755|0x1F|0X1F|-0x1f|0b11|0B11|-0b11|0b12|1_000|1__000|1_|_1|+5|-5|--5|5-|12e|1 2
1:30|12:30:45|1:60|01:30|-1:30|1:30.5|0:30|1:2:3.5|1:30am|190:20:30
1.|.5|.|..|-.5|+.5|1.5|1_0.5|1.5_0|1e5|1E5|1e-6|1e+6|1.e5|1.5e3|1.5e-3|.5e3|.5e-3|.5e+3|1_0e3|1e|e5|1e5.5|-1e-6|+1e6|1e400
.inf|.Inf|.INF|-.inf|+.inf|.iNF|inf|Infinity|.nan|.NaN|.NAN|nan|-.nan|9007199254740991|-9007199254740991
2024-01-01|2024-01-01 10:00:00|2024-01-01T10:00:00Z|10:00|1.2.3|1.2.3.4|0.0.0.0|1/2|5%|v1|a:b|a#b|<<a|==
"yes"|'010'|"1_000"|!!str 5|!!str yes|!!int "5"|!!bool "yes"|!foo 3|!!null ""
[yes, 010, 1:30, 1_0]|{a: yes, b: off}|[]|{}|[a, [b, {c: no}]]
"""

documents = [
    "base: &b {x: 1, y: two}\nm: {<<: *b, y: 3}\n",
    "base: &b\n  x: 1\n  y: two\nm:\n  y: 3\n  <<: *b\n",
    "a: &a {x: 1, z: 1}\nb: &b {x: 2, y: 2}\nm: {<<: [*a, *b], q: 0}\n",
    "a: &a {x: 1}\nb: &b {<<: *a, y: 2}\nm: {<<: *b}\n",
    "m: {<<: {x: 1}, y: 2}\n",
    "m: {<<: 1}\n",
    "m: {<<: [1]}\n",
    "a: &a [1, 2]\nb: *a\n",
    "a: {1.5: x, yes: y, 010: z, 'no': n, off: q}\n",
    "a: 1\na: 2\n",
    "a: {b: 1, b: 2}\n",
    "a: |\n  yes\nb: >\n  010\n",
    "a: ? \n",
    "--- \na: 1\n...\n",
    "a: 1\n---\nb: 1\n",
    "# only\n",
]


def yaml_texts():
    texts = [f"a: {text}\n" for line in scalars.strip().split("\n") for text in line.split("|")] + documents
    found = []
    for text in texts:
        try:
            result = OmegaConf.to_container(OmegaConf.create(text), resolve=False)
            found.append({"text": text, "value": plain(result)})
        except Exception:
            found.append({"text": text, "refused": True})
    return found


os.environ["RAYLING_GOLDEN"] = "from outside"

referring = [
    {"a": 1, "b": "${a}"},
    {"a": {"x": 1}, "b": "${a}"},
    {"a": {"x": 1}, "b": "${a.x}"},
    {"a": [1, 2], "b": "${a}"},
    {"a": [1, 2], "b": "${a.1}"},
    {"a": [1, 2], "b": "${a[1]}"},
    {"a": {"x": 5}, "b": "${a[x]}"},
    {"a": 1, "b": "x${a}y"},
    {"a": True, "b": "x${a}"},
    {"a": None, "b": "${a}"},
    {"a": None, "b": "x${a}"},
    {"a": 1.5, "b": "v${a}"},
    {"a": 1e-6, "b": "v${a}"},
    {"a": "t", "b": "${a}/${a}"},
    {"a": "${b}", "b": "${c}", "c": 3},
    {"a": "${b}", "b": "${a}"},
    {"a": "${a}"},
    {"a": "${nothing}"},
    {"a": {"b": "${.c}", "c": 4}},
    {"a": {"b": {"c": "${..d}"}, "d": 5}},
    {"a": {"b": {"c": "${...d}"}}, "d": 6},
    {"a": {"b": "${a.c}", "c": "${a.d}", "d": 7}},
    {"a": "${oc.env:RAYLING_GOLDEN}"},
    {"a": "${oc.env:RAYLING_NOT_THERE}"},
    {"a": "${oc.env:RAYLING_NOT_THERE,fallback}"},
    {"a": "${oc.env:RAYLING_NOT_THERE,null}"},
    {"a": "${oc.env:RAYLING_NOT_THERE,1}"},
    {"a": "${oc.env:RAYLING_NOT_THERE,${b}}", "b": "x"},
    {"a": "${oc.env:RAYLING_NOT_THERE,'a b'}"},
    {"a": "${oc.select:b,5}"},
    {"a": "${oc.select:b,5}", "b": 6},
    {"a": "${oc.select:b.c,null}", "b": {}},
    {"a": "${oc.select:b.c}"},
    {"a": "${oc.select:b,${c}}", "c": 7},
    {"a": "${oc.select:b,9}", "b": None},
    {"a": "${oc.select:b.c,9}", "b": {"c": None}},
    {"a": "${oc.select:b,9}", "b": "${c}", "c": None},
    {"a": "${oc.select:b,[1,2]}"},
    {"a": "${oc.select:b,''}"},
    {"a": "${oc.decode:'1'}"},
    {"a": "${oc.decode:'[1,2]'}"},
    {"a": "${oc.dict.keys:b}", "b": {"x": 1, "y": 2}},
    {"a": "${oc.dict.values:b}", "b": {"x": 1, "y": 2}},
    {"a": "${b.${c}}", "b": {"x": 8}, "c": "x"},
    {"a": "${unknown:1}"},
    {"a": "${"},
    {"a": "${}"},
    {"a": "$a"},
    {"a": "$"},
    {"a": "\\${b}", "b": 1},
    {"a": "\\\\${b}", "b": 1},
    {"a": "x\\${b}y${b}", "b": 1},
    {"a": "'${b}'", "b": 1},
    {"a": "{b}", "b": 1},
    {"a": "${ b }", "b": 1},
    {"a": ["${b}", {"c": "${b}"}], "b": 2},
    {"a": "${b.c.d}", "b": {"c": {"d": "${e}"}}, "e": "deep"},
    {"a": "${b}", "b": {"c": "${d}"}, "d": 9},
    {"a-b": 1, "c": "${a-b}"},
    {"a": {"b c": 1}, "d": "${a.b c}"},
    {"a": "${b:1}", "b": 1},
    {"a": "${oc.decode:null}"},
    {"a": "${oc.decode:${oc.env:RAYLING_NOT_THERE,null}}"},
    {"a": "${oc.decode:${b}}", "b": None},
    {"a": "${oc.decode:${b}}", "b": 5},
    {"a": "${oc.decode:5}"},
    {"a": "${oc.decode:${b}}", "b": "{x: 1, y: [a, null]}"},
    {"a": "${oc.create:{x: 1, y: [2]}}", "b": "${a.x}"},
    {"a": "${oc.create:[1, 2]}"},
    {"a": "${oc.create:${b}}", "b": {"x": 1}},
    {"a": "${oc.create:{x: ${b}, y: ${c}}}", "b": 3, "c": [1]},
    {"a": "${oc.create:null}"},
    {"a": "${oc.create:5}"},
    {"a": "${oc.deprecated:b}", "b": 4},
    {"a": "${oc.deprecated:b}", "b": {"x": 1}},
    {"a": {"b": "${oc.deprecated:.c, '$OLD_KEY is $NEW_KEY'}", "c": 5}},
    {"a": "${oc.deprecated:b}"},
    {"a": "${oc.select:b,[${c}, {x: ${c}}]}", "c": 7},
    {"a": {"b": "${oc.select:x,[${.c}]}", "c": 8}},
    {"a": "t${b}", "b": [10, "twenty", None, True, 1.5, "it's", 'say "x"', "both ' and \"", "line\nback\\"]},
    {"a": "t${b}", "b": {"x": {"y": "z"}, "q": []}},
    {"a": "t${b}", "b": 1e16},
    {"a": "t${b}", "b": 1.2345e17},
    {"a": "t${b}", "b": 9.1e15},
    {"a": "t${b}", "b": 1e22},
    {"a": "t${b}", "b": -1.5e300},
    {"a": "t${b}", "b": 0.0001},
    {"a": "t${b}", "b": 123456789012345},
]


def references():
    found = []
    for source in referring:
        try:
            result = OmegaConf.to_container(OmegaConf.create(source), resolve=True, throw_on_missing=False)
            found.append({"tree": source, "result": plain(result)})
        except Exception as error:
            found.append({"tree": source, "refused": type(error).__name__})
    return found


stores = {"db/my.yaml": "name: my\nport: 3306\n", "db/pg.yaml": "name: pg\n", "db/lite.yaml": "file: lite\n"}

layouts = [
    ("list", {"main.yaml": "defaults: [one, two, _self_]\na: {x: main}\n", "one.yaml": "a: {x: one, y: one}\n", "two.yaml": "a: {y: two, z: two}\n"}, [[]]),
    ("self first", {"main.yaml": "defaults: [_self_, one]\na: {x: main}\n", "one.yaml": "a: {x: one, y: one}\n"}, [[]]),
    ("self missing", {"main.yaml": "defaults: [one]\na: {x: main}\n", "one.yaml": "a: {x: one, y: one}\n"}, [[]]),
    ("group", {"main.yaml": "defaults: [{db: mysql}, _self_]\nport: 1\n", "db/mysql.yaml": "name: mysql\n", "db/pg.yaml": "name: pg\nuser: me\n"},
     [[], ["db=pg"], ["db.name=x"], ["db=pg", "db.name=x"], ["db=none"], ["+db=pg"], ["~db"], ["~db=mysql"], ["~db=pg"]]),
    ("group null", {"main.yaml": "defaults: [{db: null}, _self_]\nport: 1\n", "db/pg.yaml": "name: pg\n"}, [[], ["db=pg"]]),
    ("group added", {"main.yaml": "port: 1\n", "db/pg.yaml": "name: pg\n"}, [["+db=pg"], ["db=pg"]]),
    ("package", {"main.yaml": "defaults: [{db@source: pg}, {db@target: my}, _self_]\n", "db/pg.yaml": "name: pg\n", "db/my.yaml": "name: my\n"},
     [[], ["db@source=my"], ["source.name=z"], ["+db@extra.deep=my"]]),
    ("global package", {"main.yaml": "defaults: [{db: pg}, _self_]\n", "db/pg.yaml": "# @package _global_\nname: pg\ninner: {a: 1}\n"}, [[]]),
    ("named package", {"main.yaml": "defaults: [{db: pg}, _self_]\n", "db/pg.yaml": "# @package other.place\nname: pg\n"}, [[]]),
    ("group package", {"main.yaml": "defaults: [{a/b: pg}, _self_]\n", "a/b/pg.yaml": "# @package _group_\nname: pg\n"}, [[]]),
    ("nested", {"main.yaml": "defaults: [{server: big}, _self_]\n", "server/big.yaml": "defaults: [base, {db: pg}, _self_]\nsize: 9\n", "server/base.yaml": "size: 1\nname: base\n", "server/db/pg.yaml": "driver: pg\n"}, [[], ["server/db=pg"]]),
    ("relative", {"main.yaml": "defaults: [{server: big}, _self_]\n", "server/big.yaml": "defaults: [{../db@storage: pg}, _self_]\nsize: 9\n", "db/pg.yaml": "driver: pg\n"}, [[]]),
    ("absolute", {"main.yaml": "defaults: [{server: big}, _self_]\n", "server/big.yaml": "defaults: [{/db@storage: pg}, _self_]\nsize: 9\n", "db/pg.yaml": "driver: pg\n"}, [[]]),
    ("here", {"main.yaml": "defaults: [{server: big}, _self_]\n", "server/big.yaml": "defaults: [{/db@_here_: pg}, _self_]\nsize: 9\n", "db/pg.yaml": "driver: pg\n"}, [[]]),
    ("to global", {"main.yaml": "defaults: [{server: big}, _self_]\n", "server/big.yaml": "defaults: [{/db@_global_.top: pg}, _self_]\nsize: 9\n", "db/pg.yaml": "driver: pg\n"}, [[]]),
    ("override", {"main.yaml": "defaults: [base, {override db: pg}, _self_]\n", "base.yaml": "defaults: [{db: my}]\nx: 1\n", "db/pg.yaml": "name: pg\n", "db/my.yaml": "name: my\n"}, [[]]),
    ("optional", {"main.yaml": "defaults: [{optional db: nothing}, _self_]\nx: 1\n", "db/pg.yaml": "name: pg\n"}, [[]]),
    ("missing", {"main.yaml": "defaults: [{db: nothing}, _self_]\nx: 1\n", "db/pg.yaml": "name: pg\n"}, [[]]),
    ("chosen by another", {"main.yaml": "defaults: [{engine: dp}, {actor: '${engine}_actor'}, _self_]\n", "engine/dp.yaml": "# @package _global_\nkind: dp\n", "engine/mega.yaml": "# @package _global_\nkind: mega\n", "actor/dp_actor.yaml": "a: 1\n", "actor/mega_actor.yaml": "a: 2\n"}, [[], ["engine=mega"]]),
    ("list of a group", {"main.yaml": "defaults: [{db: [pg, my]}, _self_]\n", "db/pg.yaml": "a: pg\n", "db/my.yaml": "b: my\n"}, [[], ["db=[my]"]]),
    ("path", {"main.yaml": "defaults: [db/pg, _self_]\nx: 1\n", "db/pg.yaml": "a: pg\n"}, [[]]),
    ("path with package", {"main.yaml": "defaults: [db/pg@src, _self_]\nx: 1\n", "db/pg.yaml": "a: pg\n"}, [[]]),
    ("circle", {"main.yaml": "defaults: [one, _self_]\n", "one.yaml": "defaults: [main]\n"}, [[]]),
    ("interpolation", {"main.yaml": "defaults: [{db: pg}, _self_]\nport: 1\nuser: '${db.name}'\n", "db/pg.yaml": "name: pg\nport: '${port}'\nown: '${.name}'\n"}, [[]]),
    ("experiment", {**stores, "main.yaml": "defaults: [{db: my}, _self_]\nx: 1\n", "experiment/e1.yaml": "# @package _global_\ndefaults: [{override /db: pg}]\nx: 2\n", "experiment/e2.yaml": "# @package _global_\ndefaults: [e1, {override /db: lite}, _self_]\nx: 3\n", "experiment/e3.yaml": "defaults: [{override /db: pg}]\n"},
     [[], ["+experiment=e1"], ["+experiment=e2"], ["+experiment=e1", "db=lite"], ["+experiment=e3"], ["experiment=e1"], ["+experiment=[e1]"], ["~db", "+experiment=e1"], ["+experiment=e1", "+db=lite"]]),
    ("experiment in the list", {**stores, "main.yaml": "defaults: [{db: my}, {experiment: null}, _self_]\nx: 1\n", "experiment/e1.yaml": "# @package _global_\ndefaults: [{override /db: pg}]\nx: 2\n"}, [[], ["experiment=e1"]]),
    ("experiment before its group", {**stores, "main.yaml": "defaults: [{experiment: e1}, {db: my}, _self_]\nx: 1\n", "experiment/e1.yaml": "# @package _global_\ndefaults: [{override /db: pg}]\n"}, [[], ["db=lite"]]),
    ("override in the place of another", {**stores, "main.yaml": "defaults: [base, {override db@src: pg}, _self_]\n", "base.yaml": "defaults: [{db@src: my}, {db@dst: lite}]\n"}, [[], ["db@src=lite"], ["db@dst=pg"], ["db=pg"]]),
    ("override of nothing", {**stores, "main.yaml": "defaults: [base, {override dbb: pg}, _self_]\n", "base.yaml": "defaults: [{db: my}]\n"}, [[]]),
    ("override without its place", {**stores, "main.yaml": "defaults: [base, {override db: pg}, _self_]\n", "base.yaml": "defaults: [{db@src: my}]\n"}, [[]]),
    ("override of Hydra's own", {**stores, "main.yaml": "defaults: [{db: my}, _self_, {override hydra/job_logging: disabled}]\nx: 1\n"}, [[]]),
    ("override before an entry", {**stores, "main.yaml": "defaults: [{override db: pg}, {db: my}, _self_]\n"}, [[]]),
    ("override to nothing", {**stores, "main.yaml": "defaults: [base, {override db: null}, _self_]\n", "base.yaml": "defaults: [{db: my}]\nx: 1\n"}, [[], ["db=pg"]]),
    ("override to several", {**stores, "main.yaml": "defaults: [base, {override db: [pg, lite]}, _self_]\n", "base.yaml": "defaults: [{db: my}]\nx: 1\n"}, [[]]),
    ("override of an override", {**stores, "main.yaml": "defaults: [base, {override db: lite}, _self_]\n", "base.yaml": "defaults: [root, {override db: pg}]\nx: 1\n", "root.yaml": "defaults: [{db: my}]\n"}, [[]]),
    ("override inside a group", {"main.yaml": "defaults: [{server: big}, _self_]\n", "server/big.yaml": "defaults: [base, {override db: pg}, _self_]\nsize: 9\n", "server/base.yaml": "defaults: [{db: my}]\nsize: 1\n", "server/db/pg.yaml": "driver: pg\n", "server/db/my.yaml": "driver: my\n"}, [[], ["server/db=my"]]),
    ("override by an interpolated file", {**stores, "main.yaml": "defaults: [{db: my}, {mode: '${db}_mode'}, _self_]\n", "mode/my_mode.yaml": "# @package _global_\ndefaults: [{override /db: pg}]\n"}, [[]]),
    ("name after a choice", {**stores, "main.yaml": "defaults: [{mode: '${db}_mode'}, {db: my}, _self_]\n", "mode/my_mode.yaml": "fast: 1\n", "mode/pg_mode.yaml": "fast: 2\n", "experiment/e1.yaml": "# @package _global_\ndefaults: [{override /db: pg}]\n"}, [[], ["db=pg"], ["+experiment=e1"], ["mode=pg_mode"]]),
    ("name after no choice", {"main.yaml": "defaults: [{mode: '${db}_mode'}, _self_]\n", "mode/my_mode.yaml": "fast: 1\n"}, [[]]),
    ("two of a group", {**stores, "main.yaml": "defaults: [{db: my}, {db: pg}, _self_]\n"}, [[], ["db=lite"], ["~db"]]),
    ("the same twice", {**stores, "main.yaml": "defaults: [{db: my}, {db: my}, _self_]\n"}, [[]]),
    ("two of a group in two files", {**stores, "main.yaml": "defaults: [base, {db: pg}, _self_]\n", "base.yaml": "defaults: [{db: my}]\nx: 1\n"}, [[]]),
    ("nothing twice", {**stores, "main.yaml": "defaults: [{db: null}, {db: null}, _self_]\nx: 1\n"}, [[]]),
    ("two lists of a group", {**stores, "main.yaml": "defaults: [{db: [my]}, {db: [pg]}, _self_]\n"}, [[]]),
    ("self twice", {**stores, "main.yaml": "defaults: [_self_, {db: my}, _self_]\nx: 1\n"}, [[]]),
    ("base of a group", {"main.yaml": "defaults: [{algo: ppo}, _self_]\n", "algo/ppo.yaml": "gamma: 0.5\n", "algo/base.yaml": "gamma: 0.9\nlam: 1\n", "algo/mine.yaml": "defaults: [base]\nlam: 0.7\n"},
     [[], ["algo=mine"], ["algo=base"], ["~algo"], ["+algo@other=mine"]]),
    ("base of a global group", {"main.yaml": "defaults: [{algo: ppo}, _self_]\n", "algo/ppo.yaml": "# @package _global_\ngamma: 0.5\n", "algo/base.yaml": "# @package _global_\ngamma: 0.9\nlam: 1\n", "algo/mine.yaml": "# @package _global_\ndefaults: [base]\nlam: 0.7\n"}, [["algo=mine"]]),
    ("base of a removed group", {**stores, "main.yaml": "defaults: [{db: my}, {db@src: full}, _self_]\n", "db/full.yaml": "defaults: [my, _self_]\nfull: 1\n"}, [[], ["~db"], ["~db@src"], ["db=pg"], ["db@src=pg"]]),
    ("base by its whole name", {**stores, "main.yaml": "defaults: [{algo: mine}, _self_]\n", "algo/mine.yaml": "defaults: [/db/my, /plain, sub/one]\nlam: 0.7\n", "plain.yaml": "p: 1\n", "algo/sub/one.yaml": "one: 1\n"}, [[], ["~db"]]),
    ("bare names of a group", {**stores, "main.yaml": "defaults: [db/my, {db@x: pg}, _self_]\n"}, [[], ["db@x=lite"], ["db=pg"], ["~db"]]),
    ("open choice", {**stores, "main.yaml": "defaults: [{db: '???'}, _self_]\nx: 1\n", "experiment/e1.yaml": "# @package _global_\ndefaults: [{override /db: pg}]\n"}, [[], ["db=pg"], ["+experiment=e1"], ["~db"]]),
    ("open choice below", {**stores, "main.yaml": "defaults: [base, _self_]\nx: 1\n", "base.yaml": "defaults: [{db@src: '???'}]\n"}, [[], ["db@src=pg"]]),
    ("values of a group", {**stores, "main.yaml": "defaults: [{db: my}, _self_]\n"}, [["db={name:x}"], ["+db={more:1}"]]),
    ("at the root", {**stores, "main.yaml": "defaults: [{db@_global_: my}, _self_]\n"}, [[], ["db@_global_=pg"]]),
    ("at the place of the group", {**stores, "main.yaml": "defaults: [{srv: a}, _self_]\n", "srv/a.yaml": "defaults: [{/db@_group_.b: my}, {/db@_here_: pg}, {/db@_global_.c: lite}]\n"}, [[]]),
    ("groups in groups", {"main.yaml": "defaults: [{a: one}, _self_]\n", "a/one.yaml": "defaults: [{b: x}, {/a/b@c: y}, {/a/c: x}]\n", "a/b/x.yaml": "v: x\n", "a/b/y.yaml": "v: y\n", "a/c/x.yaml": "v: x\n"}, [[], ["a/b=y"], ["a/b@a.c=x"]]),
    ("removed", {**stores, "main.yaml": "defaults: [{db: my}, _self_]\nx: 1\n", "none/a.yaml": "a: 1\n"}, [["~none"], ["~db", "db=pg"], ["~db=pg", "db=pg"], ["~db=my", "db=pg"]]),
    ("settings of Hydra in a base", {"main.yaml": "defaults: [base, _self_]\nx: 1\n", "base.yaml": "hydra: {run: {dir: out}}\ny: 2\n"}, [[]]),
]


def defaults():
    found = []
    for title, files, all_overrides in layouts:
        for overrides in all_overrides:
            with tempfile.TemporaryDirectory() as folder:
                for path, text in files.items():
                    Path(folder, path).parent.mkdir(parents=True, exist_ok=True)
                    Path(folder, path).write_text(text)
                case = {"title": title, "files": files, "overrides": overrides}
                try:
                    with initialize_config_dir(folder, version_base="1.3"):
                        result = OmegaConf.to_container(compose("main", overrides), resolve=True)
                    found.append({**case, "result": result})
                except BaseException as error:
                    found.append({**case, "refused": type(error).__name__})
    return found


golden = {
    "made": "by make.py, of hydra-core 1.3.2 and omegaconf 2.3",
    "values": values(),
    "compositions": compositions(),
    "references": references(),
    "defaults": defaults(),
    "yaml": yaml_texts(),
}
Path(__file__).with_name("hydra.json").write_text(json.dumps(golden, indent=0, ensure_ascii=False) + "\n")
for part, cases in golden.items():
    if part != "made":
        print(part, len(cases), "refused", sum("refused" in case for case in cases))
