# Makes jinja.json: python make.py (Python 3.11, transformers 5.24.0, jinja2 3.1.6): what transformers renders of these templates, or that it fails.
# Each case is a template, or a template and its values.
import datetime
import json
import warnings

import transformers.utils.chat_template_utils as chat_templates

NOW = datetime.datetime(2024, 2, 9, 15, 4, 5, 6000)


class Clock(datetime.datetime):
    @classmethod
    def now(cls, tz=None):
        return NOW


chat_templates.datetime = Clock
warnings.simplefilter("ignore")

MESSAGES = [
    {"role": "system", "content": " Be <brief>. "},
    {"role": "user", "content": "What's 1 + 1? é✓😀"},
    {"role": "assistant", "content": None, "tool_calls": [{"name": "add", "arguments": {"a": 1, "b": [1.5, True, None]}}]},
    {"role": "tool", "content": 'It\'s "2"'},
]
BASE = {
    "messages": MESSAGES,
    "tools": None,
    "add_generation_prompt": True,
    "bos_token": "<s>",
    "eos_token": "</s>",
    "text": "  Hello, World!\n",
    "words": ["b", "A", "c", "a"],
    "numbers": [3, 1.5, -2, 0],
    "tree": [{"n": "a", "kids": [{"n": "b", "kids": [{"n": "c"}]}, {"n": "d"}]}, {"n": "e"}],
    "people": [{"name": "Zoe", "age": 30, "city": "Rome"}, {"name": "al", "age": 25}, {"name": "Bob", "age": 30, "city": "Oslo"}],
    "config": {"b": 1, "A": {"x": [1, 2]}, "items": "own", "n": None},
    "empty": [],
    "image": [{"type": "image", "image": "data:..."}, {"type": "text", "text": "what?"}],
}

EXPRESSIONS = """
True|none ~ none ~ false
none
true
1.0
1e16
1e-5
1.5e300
0.1 + 0.2
123456789012345678901234567890
1_000
0x1f + 0b11 + 0o17
-7 // 2
-7 % 3
7 % -3
7.5 // -2
7 / 2
8 / 2
1.0 // 0.1
2 ** 10
2 ** -1
2 ** 3 ** 2
-2 ** 2
-1|abs
1 + 2 ~ 3
'a' ~ 1 + 2
1 / 0
1.0 % 0
'ab' * 3
[1, 2] * 2
[1] + [2]
(1, 2) + (3,)
'a' + 1
1 < 2 < 3
3 > 2 > 2
1 == 1.0
1 == true
'1' == 1
none == false
[1, 'a'] == [1.0, 'a']
{'a': 1} == {'a': 1}
'a' in 'abc'
1 in [1.0]
1 in 'a'
'b' in config
'zz' not in config
not true or true
'' or 'x'
[] and 1
1 if false
(1 if false) is defined
'a' if 1 else 'b' if 0 else 'c'
[1, 2.0, 'x', none, true]
[1, [2, ['y']]]
(1,)
()
{'a': 1, "b's": 'c"d', 1: none, none: [true]}
{1: 'a', true: 'b', 1.0: 'c'}
['it\\'s', "q\\"q", 'both\\'"', 'tab\\t', 'nl\\n', 'é', '\\x00', '\\u200b', '😀', '\\\\']
'\\x41\\u0042\\101\\q'
'a' 'b'
messages[1].content
messages[-1]['content']
messages[99]
messages[99].role
messages[0].missing
messages[0].missing.more
messages[0]['missing']['more']
missing
missing.more
missing ~ 'x'
missing + 'x'
missing == nope
missing|length
missing is iterable
missing is callable
missing()
missing[0]
none.x
none.x.y
5['a']
config.items
config['items']
config.items()
config.keys()
config.values()|list
config.get('b')
config.get('zz')
config.get('zz', 7)
config.get('n', 7)
config.n
config.n is none
config.update({'q': 1})
words.append('x')
words.append is defined
words.count('a')
words.index('c')
words.pop
text.__class__
text.__class__.__name__
messages[:2]|length
messages[1:]|map(attribute='role')|list
messages[::-1]|map(attribute='role')|join(',')
'abcdef'[1:4]
'abcdef'[::-2]
'abcdef'[-3:]
'abcdef'[10:]
'a😀b'[1]
'a😀b'|length
'a😀b'[1:]
(1, 2, 3)[1:]
words[1:2]
words['x']
missing[1:]
text.strip()
text.strip(' \\n!')
text.rstrip('\\n')
text.lstrip().rstrip()
'xxaxx'.strip('x')
'\\x1cé\\ufeff\\x85'.strip()|length
text.upper()
text.title()
"they're bill's".title()
"they're bill's"|title
'ßa éA'.capitalize()
'aB'.swapcase()
'a,b,,c'.split(',')
'a b  c '.split()
' a b  c '.split(none, 1)
'a b c'.split(' ', 1)
'a b c'.split(maxsplit=1)
'a b c'.rsplit(' ', 1)
'a b c'.rsplit(none, 1)
'</think>x</think>y'.split('</think>')[-1]
'a\\nb\\r\\nc\\n'.splitlines()
'a\\nb'.splitlines(true)
','.join(['a', 'b'])
','.join([1])
'aaa'.replace('a', 'b', 2)
'ab'.replace('', '-')
'abc'.startswith('ab')
'abc'.startswith(('x', 'a'))
'abc'.startswith('b', 1)
'abc'.endswith(('c', 'd'))
'abcabc'.find('c')
'abcabc'.rfind('c')
'abc'.find('z')
'abc'.index('z')
'é😀x'.find('x')
'aXbXc'.partition('X')
'aXbXc'.rpartition('X')
'abc'.removeprefix('a').removesuffix('c')
'5'.zfill(3) ~ '-5'.zfill(4)
'ab'.ljust(4, '.') ~ 'ab'.rjust(4) ~ 'ab'.center(5, '*')
'12'.isdigit() ~ 'ab1'.isalpha() ~ 'ab1'.isalnum() ~ ' '.isspace() ~ 'Ab'.isupper()
'abab'.count('ab')
'%s is %d and %.2f%%' % ('a', 3, 1.005)
'%5s|%-5s|%05d|%+d|%x' % ('a', 'b', 42, 3, 255)
'%r' % 'a'
'%(a)s' % {'a': 1}
'%s' % [1]
'%d' % 'a'
'%s %s' % 'a'
'{} {}'.format(1, 'a')
'{0} {1} {0}'.format('a', 'b')
'{name:>8}|{n:.3f}|{n:,}'.format(name='x', n=1234.5)
'{a[b]} {{}}'.format(a={'b': 1})
'{:05d} {:<4}|{:^5}|'.format(7, 'a', 'b')
'a\\tb'.expandtabs(4)
text|trim
text|trim(' H')
'ABC'|lower
'abc'|upper|lower
5|string ~ none|string ~ 1.0|string
'hello world'|capitalize
'a-b c(d'|title
'x'|center(5)
'a b c'|wordcount
'one\\ntwo\\n\\nthree'|indent
'one\\ntwo'|indent(2, true)
'one\\n\\ntwo'|indent(width=2, blank=true)
'one\\ntwo'|indent('> ')
'foo bar baz qux'|truncate(9)
'foo bar baz qux'|truncate(9, true)
'foo bar baz qux'|truncate(11, false, '...', 0)
'aaa'|replace('a', 'b')
'aaa'|replace('a', 'b', 1)
5|replace('5', 6)
'%s-%s'|format('a', 1)
'%(x)s'|format(x=2)
'42'|int + 1
'4.7'|int
'x'|int(9)
'0x1F'|int(base=16)
none|int
'1_000'|int
'1.50'|float
'x'|float(0.5)
3|float
2.5|round
3.5|round
2.675|round(2)
42.55|round(1, 'floor')
42|round
42|round(1, 'ceil')
-2.5|round|int
1234567.891|round(2)
(-5)|abs
numbers|sum
people|sum(attribute='age')
numbers|max ~ numbers|min
words|max
words|max(case_sensitive=true)
people|min(attribute='age')
empty|max
words|sort
words|sort(reverse=true)
words|sort(case_sensitive=true)
people|sort(attribute='age,name')|map(attribute='name')|join(' ')
[3, 'a']|sort
words|unique|list
people|map(attribute='city', default='?')|list
people|map(attribute='city')|list
people|groupby('age')
people|groupby('city', default='none')|map('first')|list
config|dictsort
config|dictsort(false, 'key', true)|map('first')|list
config|items|list
missing|items|list
words|first ~ words|last
empty|first
empty|first is defined
'abc'|first ~ 'abc'|last
words|reverse|list
'abc'|reverse
words|join
words|join(', ')
people|join('/', attribute='name')
[1, none, true]|join('-')
words|length ~ words|count
words|list
'abc'|list
config|list
words|batch(3)|list
words|batch(3, '-')|list
words|slice(3)|list
words|slice(3, '-')|list
numbers|select('>', 0)|list
numbers|select('odd')|list
numbers|select|list
numbers|reject('lt', 1)|list
people|selectattr('age', 'equalto', 30)|map(attribute='name')|list
people|selectattr('city')|map(attribute='name')|list
people|selectattr('city', 'undefined')|list|length
people|rejectattr('city', 'defined')|map(attribute='name')|list
people|map('length')|list
words|map('upper')|join
words|map('replace', 'a', 'x')|list
words|map('upper')
words|map('upper')|length
(words|map('upper'))[0]
words|map('nope')|list
missing|default('d')
''|default('d')
''|default('d', true)
none|default('d')
none|d('d', true)
messages[0]|attr('role') is defined
messages[0]|attr('get') is callable
missing|map('upper')|list
5|length
5|first
5|list
'<a href="x">&\\''|e
'<b>'|safe ~ '<c>'
'<b>'|escape|string
messages[0].content|escape
'a b/c?é'|urlencode
{'a b': 1}|urlencode
1500|filesizeformat
10|filesizeformat
1536|filesizeformat(true)
messages|tojson
messages[2].tool_calls|tojson(indent=2)
{'b': 1, 'a': [1.0, 1e20, none, true]}|tojson(sort_keys=true)
'é\\u2028</script>\\x7f'|tojson
'é😀'|tojson(ensure_ascii=true)
{'a': [1, 2]}|tojson(separators=(',', ':'))
{}|tojson(indent=4) ~ []|tojson(indent=4)
{1: 2, none: 3, true: 4, 1.5: 5}|tojson
missing|tojson
(1, 2)|tojson
[1, [2]]|tojson(indent='\\t')
config|tojson(true, 1)
'x'|nope
1 is nope
1 is odd
2 is even
'a' is odd
9 is divisibleby(3)
9 is divisibleby 2
1 is number ~ true is number
true is integer ~ 1 is integer ~ 1.0 is float
true is boolean
'a' is string
none is none
none is not none
config is mapping
words is sequence ~ 'a' is sequence ~ config is sequence ~ 1 is sequence
words is iterable ~ 1 is iterable
missing is defined
messages is defined and messages|length > 3
'a' is lower ~ 'A' is upper
1 is eq(1) ~ 1 is ne 2 ~ 1 is lt 2 ~ 2 is ge(2)
1 is in [1, 2]
true is sameas true
none is sameas(none)
range is callable
'upper' is filter ~ 'nope' is filter ~ 'odd' is test
'a'|safe is escaped
1 is true
not missing is defined
range(3)
range(3)|list
range(5, 0, -2)|list
range(10)[2]
range(3)|length
range(1000000)
dict(a=1, b=2)
dict([('a', 1)])
dict(config, b=2).b
namespace(a=1)
namespace(a=1).a
namespace(_a=1)
lipsum
raise_exception('no ' ~ 5)
strftime_now('%Y-%m-%d')
strftime_now('%d %b %Y')
strftime_now('%A, %B %-d, %Y %H:%M:%S')
strftime_now('%j|%U|%W|%V|%G|%u|%w|%y|%I|%p|%e|%f|%%')
1, 2
1 if messages else 2, 3
messages|map(attribute='content')|select('none')|list
messages[0].content.strip().split()[0].upper()[:1]
{'a': {'b': {}}}
'}}' ~ '%}'
words.__len__()
(1).real
image|selectattr('type', 'equalto', 'text')|map(attribute='text')|join
image[0].image is defined
[[1, 2], [3]]|sum(start=[])
'a'.nope()
'a'.join
3.0|int ~ 3.9|int ~ (-3.9)|int
1e400
-0.0
1.0e5|int
100000000000000000.0
12345.678e-10
(2 ** 0.5)|round(3)
10 ** 20
5 // 0
'abc' < 'abd'
'Z' < 'a'
[1, 2] < [1, 3]
1 < 'a'
none < 1
'ǆ'.upper()
'ΑΣ'.lower()
'İ'.lower()|length
'straße'.upper()
'a b'.split('')
{}.x
'%c' % 'a'
'x'|wordwrap
'x'.encode()
words|random
false|map(attribute='x')|list
0|map('upper')|list
none|map|list
5|map('upper')|list
words|map|list
0|select|list ~ none|rejectattr('x')|list
""".strip().splitlines()

TEMPLATES = [
    # White space.
    "a\n  {% if true %}\n  b\n  {% endif %}\nc\n",
    "a  {%- if true -%}  b  {%- endif -%}  c",
    "a \n {%+ if true %} b {% endif +%}\n c",
    "  {{ 1 }}\n  {{- 2 -}}\n  3\n\n",
    "{% if true %}\n\nx{% endif %}\n\n",
    "x {# note #} y\n  {# note #}\nz {#- note -#} w",
    "{%- raw %}\n {{ x }} {% endraw %}\n  {%- raw -%} a {%- endraw -%} b",
    "a\r\n{% if true %}\r\nb\r\n{% endif %}\r\nc\rd",
    "{{ 'a\r\nb' }}",
    "\u00a0{%- if true %}\ufeff{%- endif %}x",
    "x\t{% set a = 1 %}\ty\n\t{% set a = 1 %}\n{{ a }}",
    "{{ {'a': {'b': 1}}['a'] }} {{ '}}' }} -}\nx %}\ny",
    "{% for m in messages %}\n{{ m.role }}\n{% endfor %}\nend",
    "  {% for m in messages -%}\n  {{ m.role }} {%- endfor %}",
    # Loops.
    "{% for i in [1, 2, 3] %}{{ loop.index }}{{ loop.index0 }}{{ loop.revindex }}{{ loop.revindex0 }}{{ loop.first }}{{ loop.last }}{{ loop.length }}{{ loop.depth }}{{ loop.depth0 }};{% endfor %}",
    "{% for i in [1, none, 3] %}{{ loop.previtem }}<{{ i }}>{{ loop.nextitem }};{{ loop.previtem is defined }} {% endfor %}",
    "{% for i in words %}{{ loop.cycle('x', 'y') }}{{ loop.changed(i|lower) }}{% endfor %}",
    "{% for i in numbers if i > 0 %}{{ loop.index }}/{{ loop.length }}:{{ i }} {% else %}none{% endfor %}",
    "{% for i in empty %}x{% else %}none{% endfor %}{% for i in missing %}x{% else %}{{ i }}{% endfor %}",
    "{% for k, v in config.items() %}{{ k }}={{ v }};{% endfor %}",
    "{% for k in config %}{{ k }}{% endfor %}{% for c in 'añ😀' %}[{{ c }}]{% endfor %}",
    "{% for (a, b), c in [((1, 2), 3)] %}{{ a }}{{ b }}{{ c }}{% endfor %}",
    "{% for a, b in [1, 2] %}{{ a }}{% endfor %}",
    "{% for a, b in [(1, 2, 3)] %}{{ a }}{% endfor %}",
    "{% for i in 5 %}{% endfor %}",
    "{% for x in tree recursive %}{{ loop.depth }}{{ x.n }}{% if x.kids %}({{ loop(x.kids) }}){% endif %}{% endfor %}",
    "{% for x in tree %}{{ loop(x.kids) }}{% endfor %}",
    "{% for i in range(9) %}{% if i == 2 %}{% continue %}{% endif %}{% if i == 5 %}{% break %}{% endif %}{{ i }}{% endfor %}",
    "{% for m in messages %}{% if m.role == 'system' %}{% break %}{% endif %}{{ m.content }}{% else %}none{% endfor %}",
    "{% for m in messages %}{% if m.role != 'robot' %}{% continue %}{% endif %}{{ m.content }}{% else %}none{% endfor %}",
    "{% for i in [1, 2] %}{% if i == 2 %}{% break %}{% endif %}{{ i }}{% else %}none{% endfor %}",
    "{% for i in [1, 2] %}{% if i == 1 %}{% continue %}{% endif %}{{ i }}{% else %}none{% endfor %}",
    "{% for i in [1, 2] %}{{ i }}{% for j in empty %}{% else %}e{% break %}f{% endfor %}g{% else %}none{% endfor %}",
    "{% for i in [1, 2] %}{{ i }}{% for j in empty %}{% else %}e{% continue %}f{% endfor %}g{% else %}none{% endfor %}",
    "{% for i in [1, 2] %}{{ i }}{% for j in [3] %}{% break %}{% else %}{% for k in empty %}{% else %}{% break %}{% endfor %}f{% endfor %}g{% else %}none{% endfor %}",
    "{% for i in [1, 2] %}{{ i }}{% set x %}{% for j in empty %}{% else %}{% continue %}{% endfor %}{% endset %}g{{ x }}{% endfor %}",
    "{% for i in empty %}{% else %}{% break %}{% endfor %}",
    "{% for i in [1, 2] %}{% for j in empty recursive %}{% else %}{% break %}{% endfor %}{% endfor %}",
    "{% for x in tree recursive %}{{ x.n }}{% if x.kids %}({{ loop(x.kids) }}){% else %}{% continue %}{% endif %}{% else %}leaves{% endfor %}",
    "{% for i in [1, 2] %}{% macro m() %}{% for j in empty %}{% else %}{% break %}{% endfor %}{% endmacro %}{% endfor %}",
    "{% for i in words %}{% for j in numbers %}{{ loop.index }}{% endfor %}{{ loop.index }};{% endfor %}",
    "{% for i in words|map('upper') %}{{ loop.last }}{{ i }}{% endfor %}{% set g = words|map('upper') %}{{ g|list }}{{ g|list }}",
    "{% for i in [1, 2] %}{{ loop }}{% endfor %}",
    "{% break %}",
    "{% for i in 1, 2 %}{{ i }}{% endfor %}",
    "{% for m in messages if m.role != 'system' and m.content %}{{ loop.first }}{{ m.content }}{% endfor %}",
    "{% set ns = namespace(n=0) %}{% for i in [1, 2, 3] if ns.n < 2 %}{% set ns.n = ns.n + 1 %}{{ i }}{% endfor %}",
    # Scopes.
    "{% set x = 1 %}{% for i in [1, 2] %}{{ x }}{% set x = i + 10 %}{{ x }}{% endfor %}{{ x }}",
    "{% if true %}{% set x = 1 %}{% endif %}{{ x }}",
    "{% set ns = namespace(x=1) %}{% for i in [1, 2] %}{% set ns.x = ns.x + i %}{% endfor %}{{ ns.x }}",
    "{% set ns = namespace() %}{{ ns.x is defined }}{% set ns.y = none %}{{ ns.y }}{{ ns['y'] is none }}",
    "{% set d = {} %}{% set d.x = 1 %}",
    "{% set a, b = 1, 2 %}{{ a }}{{ b }}{% set c = 1, 2 %}{{ c }}",
    "{% set x %}\n a{{ 1 }} {% endset %}[{{ x }}]{% set y | upper | trim %} b {% endset %}[{{ y }}]",
    "{% with a = 1, b = 2 %}{{ a }}{{ b }}{% set a = 3 %}{{ a }}{% endwith %}{{ a }}",
    "{% set a = 1 %}{% with a = 2, b = a %}{{ a }}{{ b }}{% endwith %}",
    "{% with %}{% set q = 1 %}{{ q }}{% endwith %}{{ q is defined }}",
    "{% filter upper|replace('A', 'x') %}a{{ 'b' }}{% endfilter %}",
    "{% generation %}{{ 1 }}{% set z = 1 %}{% endgeneration %}{{ z is defined }}",
    "{%- for m in messages %}\n  {%- generation %}\n{{ m.role }}\n  {%- endgeneration %}\n{% endfor %}",
    "{% set loop = 1 %}{{ loop }}",
    "{% set true = 1 %}",
    "{{ a }}{% set a = 1 %}{{ a }}",
    "{% set messages = messages[1:] %}{{ messages|length }}",
    # Macros.
    "{% macro m(a, b=2, c=a) %}{{ a }}{{ b }}{{ c }}{% endmacro %}{{ m(1) }}{{ m(1, c=3) }}{{ m(b=1) }}",
    "{% macro m(a) %}{{ a }}{{ varargs }}{{ kwargs }}{% endmacro %}{{ m(1, 2, 3, x=4) }}",
    "{% macro m(a) %}{{ a }}{% endmacro %}{{ m(1, 2) }}",
    "{% macro m(a) %}{{ a }}{% endmacro %}{{ m(z=2) }}",
    "{% macro m() %}<{{ caller('x') }}>{% endmacro %}{% call(v) m() %}{{ v }}!{% endcall %}",
    "{% macro m() %}x{% endmacro %}{% call m() %}y{% endcall %}",
    "{% set y = 1 %}{% macro m() %}{{ y }}{% endmacro %}{% set y = 2 %}{{ m() }}{% for i in [1] %}{% set y = 3 %}{{ m() }}{% endfor %}",
    "{% macro f(n) %}{{ n }}{% if n > 0 %}{{ f(n - 1) }}{% endif %}{% endmacro %}{{ f(3) }}",
    "{% macro m(a) %}{% endmacro %}{{ m.name }}{{ m.arguments }}{{ m }}",
    "{% macro m(x) %}  {{- x }}\n{% endmacro %}[{{ m('a') }}][{{ m('b')|trim }}]",
    "{% macro m(a='x') %}{{ a }}{% endmacro %}{{ m(missing) }}|{{ m(none) }}|{{ m(*['y']) }}{{ m(**{'a': 'z'}) }}",
    "{% for i in [1, 2] %}{% macro m() %}{{ i }}{% endmacro %}{{ m() }}{% endfor %}",
    "{% macro f() %}{{ f() }}{% endmacro %}{{ f() }}",
    # What is not there, and what is wrong.
    "{% if missing %}a{% else %}b{% endif %}{% if missing.x %}{% endif %}",
    "{% if false %}{{ 'x'|nope }}{% endif %}ok",
    "{{ 'x'|nope if false else 'ok' }}",
    "{% for i in [] %}{{ 'x'|nope }}{% endfor %}",
    "{% if messages[0]['role'] == 'system' %}{{ raise_exception('System role not supported') }}{% endif %}",
    "{% nope %}",
    "{% if true %}",
    "{{ 1 + }}",
    "{{ (1 }}",
    "{{ 'a }}",
    "{% do words %}",
    "{% include 'x' %}",
    "{% print 'a', 1 %}",
    "{% endif %}",
    "{{ }}",
    "{{ a b }}",
    "{% if 1 %}a{% elif 2 %}b{% else %}c{% endif %}{% if 0 %}a{% elif '' %}b{% elif 1 %}d{% endif %}",
    "{% set c = cycler('a', 'b') %}{{ c.next() }}{{ c.current }}{{ c.next() }}{{ c.next() }}{% set j = joiner('|') %}{{ j() }}{{ j() }}",
    "{% set x = [1] %}{{ x.append(2) }}",
    "{% block b %}x{% endblock %}",
    "{% autoescape true %}{{ '<' }}{% endautoescape %}",
    "{{ self }}",
    "{{ 'x' }}{{ undefined }}{{ loop }}{{ none }}{{ None }}{{ NONE }}",
    "{{ messages | selectattr('role', 'in', ['user', 'tool']) | map(attribute='role') | list | tojson }}",
    "{%- if tools is not none %}T{% endif %}{% if tools %}U{% endif %}{{ tools is defined }}",
    "{% for tool in [{'function': {'name': 'f', 'parameters': {'type': 'object'}}}] %}{{ tool.function | tojson }}{{ tool | tojson(indent=4) }}{{ tool }}{% endfor %}",
    "{{ '<|im_start|>' + message.role if message is defined else '' }}{{- '\\n' }}",
    "{% set content = messages[3].content if messages[3].content is string else '' %}{{ content.split('\"')[1] }}",
    "{% for message in messages %}{% if (message['role'] == 'user') != (loop.index0 % 2 == 0) %}{{ loop.index0 }}{% endif %}{% endfor %}",
    # A case by itself has its own values.
    ("{{ x }} {{ y }} {{ z }}", {"x": 1.5, "y": -3, "z": 1e-7}),
    ("{{ x.__proto__ }}{{ x['constructor'] }}{{ x.toString is defined }}", {"x": {"__proto__": 1, "constructor": 2}}),
    ("{{ constructor }}{{ x|toString }}", {"x": 1}),
    ("{{ x.items }}{{ x['keys'] }}", {"x": {"items": 1, "keys": 2}}),
    ("{% for k, v in x|items %}{{ k }}{{ v }}{% endfor %}", {"x": {"2": "b", "1": "a"}}),
    ("{{ x | tojson }}", {"x": {"\u2028": "\ud83d\ude00", "a\"b": "\\"}}),
    ("{{ range }}", {"range": "mine"}),
]


def outcome(template, values):
    try:
        compiled = chat_templates._cached_compile_jinja_template(template)
        return {"text": compiled.render(**values)}
    except Exception as error:
        return {"error": type(error).__name__}


cases = [("{{ " + line + " }}", None) for line in EXPRESSIONS]
cases += [(case, None) if isinstance(case, str) else case for case in TEMPLATES]
golden = []
for template, values in cases:
    found = outcome(template, values or BASE)
    if "0x" in found.get("text", "") and " at 0x" in found["text"]:
        found = {"address": True}
    golden.append({"template": template, **({} if values is None else {"values": values}), **found})
with open("jinja.json", "w") as file:
    json.dump({"now": NOW.isoformat(), "values": BASE, "cases": golden}, file, ensure_ascii=True, indent=1)
    file.write("\n")
print(len(golden), "cases,", sum("text" in case for case in golden), "with a text")
