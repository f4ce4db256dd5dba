"""Many bounds on few subjects: rows that are screened by codes, against lxml."""

from random import Random

import pyarrow as pa
from lxml import etree

import tamis

FIELDS = ("price", "low", "volume")
# Few enough that messages hit bounds, many enough that bounds do not become conditions.
VALUES = [str(n) for n in range(-60, 120)] + [f"{n / 8}" for n in range(-80, 300)] + ["-0", "1000000000000"]


def test_screened_rows_agree_with_lxml() -> None:
    random = Random("ranges")

    def query() -> str:
        tests = []
        for _ in range(random.randrange(1, 5)):
            test = (
                f"/q/{random.choice(FIELDS)} {random.choice(['<', '<=', '>', '>='])} {random.choice(VALUES)}"
            )
            tests.append(f"not({test})" if random.random() < 0.3 else test)
        if random.random() < 0.9:
            tests.insert(0, f"/q/s = 's{random.randrange(2)}'")
        if random.random() < 0.2:
            tests.append(random.choice(["/q/extra", "not(/q/extra)"]))
        both = " and ".join(tests)
        return f"({both}) or /q/s = 'all'" if random.random() < 0.1 else both

    def message() -> bytes:
        fields = [(field, random.choice([*VALUES, "none"])) for field in FIELDS if random.random() < 0.9]
        if random.random() < 0.3:
            fields.append((random.choice(FIELDS), random.choice(VALUES)))
        if random.random() < 0.5:
            fields.append(("extra", ""))
        inner = "".join(f"<{name}>{value}</{name}>" for name, value in fields)
        return f"<q><s>s{random.randrange(2)}</s>{inner}</q>".encode()

    queries = [query() for _ in range(1_500)]
    compiled = [etree.XPath(text) for text in queries]
    index = tamis.Index()
    index.load(pa.table({"target": range(len(queries)), "query": queries}))
    for _ in range(60):
        text = message()
        document = etree.fromstring(text)
        expected = [target for target, matches in enumerate(compiled) if matches(document)]
        assert index.match(text) == expected, text
