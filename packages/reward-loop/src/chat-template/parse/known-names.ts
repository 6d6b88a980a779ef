/** The filters and tests that jinja2 has, with transformers' own. */

const filters: ReadonlySet<string> = new Set(
  (
    "abs attr batch capitalize center count d default dictsort e escape filesizeformat first float forceescape " +
    "format groupby indent int items join last length list lower map max min pprint random reject rejectattr " +
    "replace reverse round safe select selectattr slice sort string striptags sum title tojson trim truncate " +
    "unique upper urlencode urlize wordcount wordwrap xmlattr"
  ).split(" "),
);

const tests: ReadonlySet<string> = new Set(
  (
    "boolean callable defined divisibleby eq equalto escaped even false filter float ge greaterthan gt in integer " +
    "iterable le lessthan lower lt mapping ne none number odd sameas sequence string test true undefined upper"
  ).split(" "),
);

/** Names between double underscores that Python's values have: the sandbox shows none of it. */
const hidden: ReadonlySet<string> = new Set(
  (
    "abs add and annotations bool builtins call ceil class class_getitem closure code contains " +
    "defaults del delattr delitem dict dir divmod doc eq float floor floordiv format ge get " +
    "getattribute getformat getitem getnewargs getstate globals gt hash iadd imul index init " +
    "init_subclass int invert ior iter kwdefaults le len lshift lt mod module mul name ne neg new " +
    "next or pos pow qualname radd rand rdivmod reduce reduce_ex repr reversed rfloordiv rlshift rmod " +
    "rmul ror round rpow rrshift rshift rsub rtruediv rxor setattr setitem sizeof str sub " +
    "subclasshook truediv trunc xor"
  ).split(" "),
);

export function isHidden(attribute: string): boolean {
  const [, name = ""] = /^__(\w+)__$/.exec(attribute) ?? [];
  return hidden.has(name);
}

export function knows(kind: "filter" | "test", name: string): boolean {
  return (kind === "filter" ? filters : tests).has(name);
}
