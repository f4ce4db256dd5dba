"""Writes `network.toml`."""

from collections.abc import Mapping, Sequence


def network_file(*ends: str, tenants: Mapping[str, Sequence[str]] | None = None) -> str:
    """Brokers with one-letter names, linked by directories below `links`; `ab` links a and b.

    `tenants`: by link, those that it is for.
    """
    barred = tenants or {}
    names = "".join(f'[[broker]]\nname = "{name}"\n' for name in sorted(set("".join(ends))))
    links = (
        f'[[link]]\nends = ["{one[0]}", "{one[1]}"]\npath = "links/{one}"\n'
        + (f"tenants = {list(barred[one])}\n" if one in barred else "")
        for one in ends
    )
    return names + "".join(links)
