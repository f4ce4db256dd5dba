"""The job on a real standalone cluster: a master and two workers, each with its own cache."""

from pathlib import Path

from tamis.catalog import Catalog
from tamis.generations.store import Store
from tamis.model.subscription import NewSubscription
from tests.helpers.cluster import standalone_cluster
from tests.helpers.jobs import Folder, running, until_running
from tests.helpers.waiting import until

SETTINGS = """
[[source]]
name = "inbox"
path = "inbox"
max_bytes = 2_097_152
"""


def test_workers_fetch_generations_into_their_own_caches(tmp_path: Path) -> None:
    with standalone_cluster(tmp_path / "cluster") as cluster:
        config = {
            "spark.driver.host": "127.0.0.1",
            "spark.driver.bindAddress": "127.0.0.1",
            "spark.executor.memory": "512m",
            "spark.cores.max": "2",
        }
        lines = "".join(f'"{name}" = "{value}"\n' for name, value in config.items())
        folder = Folder(
            tmp_path / "job", SETTINGS, f'[spark]\nmaster = "{cluster.master}"\n[spark.config]\n{lines}'
        )
        with Catalog(folder.catalog) as catalog, running(folder) as job:
            catalog.add(NewSubscription("ann", "//b[@n = 7]", id="q1"))
            until_running(job)
            rows = [f'{{"id": "{n}", "xml": "<a><b n=\'{n % 10}\'/></a>"}}\n' for n in range(2_000)]
            for part in range(4):
                folder.publish(f"{part}.jsonl", "".join(rows[part::4]).encode())
            until(lambda: folder.read() == 2_000, "the first messages")
            catalog.add(NewSubscription("bob", "//b[@n = 8]", id="q2"))
            for part in range(4):
                folder.publish(
                    f"again-{part}.jsonl", "".join(rows[part::4]).replace('"id": "', '"id": "x').encode()
                )
            until(lambda: folder.read() == 4_000, "the messages after the change")
            assert job.stop() == 0
        found = {(row["subscription"], int(row["message"].lstrip("x")) % 10) for row in folder.deliveries()}
        assert found == {("q1", 7), ("q2", 8)}
        assert len(folder.deliveries()) == 600
        store = Store(folder.state / "generations")
        caches = [Store(store.cache_in(place / "cache")) for place in cluster.folders]
        newest = folder.records()[-1].generation
        assert [cache.newest() for cache in caches] == [newest, newest]
