"""The oracle of routing, with real catalogs, generations and parcels."""

import os
import random
from pathlib import Path

import pytest

from tests.helpers.real_network import RealNetwork
from tests.helpers.routing_oracle import MESSAGES, QUERIES, Oracle, check_quiet

NETWORKS = int(os.environ.get("TAMIS_REAL_NETWORKS") or 4)
"""Random networks; `make soak` takes 200."""

STEPS = {"subscribe": 3, "unsubscribe": 1, "publish": 4, "step": 6, "exchange": 8, "process": 5}
STEPS |= {"half": 2, "restart": 1}
"""What happens to a broker, and how often; `half`: a batch ends after its parcels are published."""


@pytest.mark.parametrize("seed", range(NETWORKS))
def test_random_networks_with_catalogs_and_parcels(seed: int, tmp_path: Path) -> None:
    draw = random.Random(seed)
    names = "abcde"[: draw.randint(2, 4)]
    network = RealNetwork(tmp_path, *(draw.choice(names[:at]) + names[at] for at in range(1, len(names))))
    oracle = Oracle(network)
    try:
        for _ in range(draw.randint(20, 50)):
            broker = network.brokers[draw.choice(names)]
            match draw.choices([*STEPS], [*STEPS.values()])[0]:
                case "subscribe":
                    oracle.subscribe(broker.name, draw.choice("tu"), draw.choice(QUERIES))
                case "unsubscribe" if oracle.active:
                    oracle.unsubscribe(draw.choice(sorted(oracle.active)))
                case "publish":
                    oracle.publish(broker.name, draw.choice("tu"), draw.choice(MESSAGES))
                case "step":
                    broker.routing.step()
                case "exchange":
                    broker.exchange()
                case "process":
                    broker.process()
                case "half":
                    broker.process(done=False)
                case "restart":
                    broker.restart()
        network.settle()
        oracle.check()
        check_quiet(network, oracle)
    finally:
        network.close()
