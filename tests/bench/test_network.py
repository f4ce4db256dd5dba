"""The measurements of a network of brokers, small."""

from benches.network import changes, regional


def test_routing_is_between_the_ideal_and_flooding() -> None:
    whole, tenth = regional(20, 100), regional(20, 100, share=0.1)
    assert whole.ideal == tenth.ideal
    assert whole.ideal <= whole.routed <= tenth.routed < whole.flooding
    assert tenth.rows <= whole.rows / 5


def test_a_change_costs_less_than_the_table() -> None:
    changed = changes(2_000, 20)
    assert changed.bytes_ratio < 0.1
