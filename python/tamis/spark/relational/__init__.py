"""The relational engine: messages matched by joins on tables of subscriptions, on Spark SQL.

| file | what it holds |
|---|---|
| `matching.py` | `match` and `match_subscriptions`: messages → matches, step by step |
| `plans.py` | the list of plans: which candidates the first joins give |
| `first_join.py` | what both begin with: rows whose access line has a hit |
| `unroll.py` | the plan `unroll`: all ranges of a row are screened at once |
| `chain.py` | the plan `chain`: one line after the other, a loop of joins |
| `hits.py` | candidates → those whose lines have hits that agree on the nodes of their anchors |
| `verifying.py` | pairs that joins cannot decide → the kernel |
"""

from tamis.spark.relational.matching import match, match_subscriptions
from tamis.spark.relational.plans import PLANS

__all__ = ["PLANS", "match", "match_subscriptions"]
