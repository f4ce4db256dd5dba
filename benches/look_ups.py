"""Transformations with look-ups in local data, beside Saxon with a hand-written map, one by one.

Saxon gets the records as a map from symbol to record, made once, and messages that are parsed already.
"""

from statistics import median
from typing import Any

from benches.saxon import Saxon
from tamis import Data
from tamis.bench.data import conditions, loaded, row
from tamis.bench.measure import array, timed

TRANSFORMATIONS = 1000
RECORDS = 10_000
MESSAGES = 50
ROUNDS = 3

_OURS = (
    "for $t in //trade, $c in collection('companies')/row[symbol = $t/@symbol][{}] "
    "return <deal>{{ $c/name, $t/price }}</deal>"
)
_THEIRS = (
    "for $t in .//trade, $c in $companies(string($t/@symbol))[{}] return <deal>{{ $c/name, $t/price }}</deal>"
)
_MAP = "declare variable $records external; map:merge($records/row ! map:entry(string(symbol), .))"
_EVALUATE = "declare variable $messages external; declare variable $companies external; $messages ! ({})"


def times_faster_than_saxon() -> float:
    """How many times longer Saxon takes; `ValueError` if the outputs differ in number."""
    messages = [
        f'<trade symbol="S{place * 7}"><price>1</price></trade>'.encode() for place in range(MESSAGES)
    ]
    records = [row(place) for place in range(RECORDS)]
    own = conditions(TRANSFORMATIONS)
    index = loaded([_OURS.format(condition) for condition in own], Data(records))
    everything = array(messages)
    made = index.transform_batch(everything)
    ours = median(timed(index.transform_batch, everything)[0] for _ in range(ROUNDS))

    saxon = Saxon(messages)
    saxon.queries.set_property("!method", "xml")
    data = [saxon.processor.parse_xml(xml_text=record.decode()) for record in records]
    saxon.queries.declare_namespace("map", "http://www.w3.org/2005/xpath-functions/map")
    saxon.queries.set_parameter("records", saxon._sequence(data))
    saxon.queries.set_query_content(_MAP)
    saxon.queries.set_parameter("companies", saxon.queries.run_query_to_value())
    # Saxon compares text with a number only after an explicit conversion.
    queries = [_THEIRS.format(condition.replace("size >", "number(size) >")) for condition in own]

    def run(given: Any) -> int:
        saxon.queries.set_parameter("messages", given)
        count = 0
        for query in queries:
            saxon.queries.set_query_content(_EVALUATE.format(query))
            count += (saxon.queries.run_query_to_string() or "").count("<deal>")
        return count

    whole, nothing = saxon._sequence(saxon.documents), saxon._sequence([])
    theirs = min(timed(run, whole)[0] for _ in range(ROUNDS))
    theirs -= min(timed(run, nothing)[0] for _ in range(ROUNDS))
    expected, found = run(whole), sum(count is not None for count in made.made.column("output").to_pylist())
    if expected != found:
        raise ValueError(f"Saxon makes {expected} outputs, tamis {found}")
    return theirs / ours


if __name__ == "__main__":
    print(f"{times_faster_than_saxon():.1f}")
