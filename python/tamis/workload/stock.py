"""The flat workload of seed 004 §5.1: stock quotes, and subscriptions to one symbol within bounds."""

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import combinations, product
from random import Random

from tamis.model.progress import Report
from tamis.workload.error import WorkloadError

SYMBOLS = 5_000

# Fields are independent, so that the number of notifications is predictable. Their ranges do not overlap:
# no low is above a price and no high below one.
FIELDS = {
    "price": (100.0, 200.0),
    "open": (100.0, 200.0),
    "low": (10.0, 100.0),
    "high": (200.0, 290.0),
    "volume": (10_000.0, 99_999.0),
}
INEQUALITIES = 4

SPREAD = 0.15
"""The relative spread of the pass rates of inequalities."""


@dataclass(frozen=True)
class StockOptions:
    """The numbers of subscriptions and messages, and the approximate number of notifications."""

    subscriptions: int = 1_000_000
    messages: int = 10_000
    notifications: int = 10_000

    @property
    def pass_rate(self) -> float:
        """The share of pairs that pass one inequality; of pairs with the same symbol, its 4th power match."""
        pairs = self.subscriptions / SYMBOLS * self.messages
        if not 0 < self.notifications <= pairs:
            raise WorkloadError(
                "too-many-notifications",
                f"{self.subscriptions} subscriptions and {self.messages} messages give at most "
                f"{pairs:.0f} notifications, not {self.notifications}",
            )
        return float((self.notifications / pairs) ** (1 / INEQUALITIES))


def stock_subscriptions(
    options: StockOptions, *, seed: int | str, progress: Report | None = None
) -> Iterator[str]:
    """One equality on the symbol and four inequalities each, like figure 5.1 of the seed."""
    random = Random(f"stock subscriptions {seed}").random
    rate = options.pass_rate
    spread = min(SPREAD, 1 / rate - 1)
    narrowest, width = rate * (1 - spread), 2 * rate * spread
    shapes = [
        _Shape(fields, operators)
        for fields in combinations(FIELDS, INEQUALITIES)
        for operators in product("<>", repeat=INEQUALITIES)
    ]
    for made in range(options.subscriptions):
        shape = shapes[int(random() * len(shapes))]
        (a, b), (c, d), (e, f), (g, h) = shape.bounds
        # From the end of a field's range that an inequality lets pass, go a pass rate's share inwards.
        yield shape.template % (
            random() * SYMBOLS,
            a + b * (narrowest + width * random()),
            c + d * (narrowest + width * random()),
            e + f * (narrowest + width * random()),
            g + h * (narrowest + width * random()),
        )
        if progress is not None and made % 10_000 == 9_999:
            progress(made + 1, options.subscriptions)


class _Shape:
    """A choice of fields and operators: the text with gaps, and for each gap (origin, signed length)."""

    def __init__(self, fields: tuple[str, ...], operators: tuple[str, ...]) -> None:
        tests = [
            f"/stock/{field}/text() {operator} %.2f"
            for field, operator in zip(fields, operators, strict=True)
        ]
        self.template = '/stock/symbol/text() = "S%04d" and ' + " and ".join(tests)
        self.bounds = []
        for field, operator in zip(fields, operators, strict=True):
            low, high = FIELDS[field]
            self.bounds.append((low, high - low) if operator == "<" else (high, low - high))


def stock_messages(options: StockOptions, *, seed: int | str) -> Iterator[bytes]:
    """Quotes of about 150 bytes, like figure 5.1 of the seed."""
    random = Random(f"stock messages {seed}")
    uniform = random.uniform
    for _ in range(options.messages):
        symbol = random.randrange(SYMBOLS)
        price, opened, low, high, volume = (uniform(*bounds) for bounds in FIELDS.values())
        yield (
            f"<stock><symbol>S{symbol:04d}</symbol><price>{price:.2f}</price><open>{opened:.2f}</open>"
            f"<change>{price - opened:.2f}</change><low>{low:.2f}</low><high>{high:.2f}</high>"
            f"<volume>{volume:.0f}</volume></stock>"
        ).encode()
