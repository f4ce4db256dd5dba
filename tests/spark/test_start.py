"""The start of a job: what it says, and the archive of Java classes that makes it faster."""

from pathlib import Path

import pytest

from tamis.catalog import Catalog
from tamis.jvm.class_archive import cache_folder
from tamis.model.subscription import NewSubscription
from tests.helpers.jobs import Folder, running, until_running
from tests.helpers.waiting import until


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Folder:
    """A job with one subscription, whose cache is empty."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    folder = Folder(tmp_path)
    with Catalog(folder.catalog) as catalog:
        catalog.add(NewSubscription("ann", "//a"))
    return folder


def jvm_command(pid: int) -> str:
    """The command line of the job's JVM."""
    [children] = [task.read_text() for task in Path(f"/proc/{pid}/task/{pid}").glob("children")]
    commands = [Path(f"/proc/{child}/cmdline").read_text() for child in children.split()]
    return next(command for command in commands if "SparkSubmit" in command)


def archives() -> list[Path]:
    return list(cache_folder().glob("*.jsa"))


def test_the_first_job_makes_the_archive_and_later_ones_use_it(folder: Folder) -> None:
    with running(folder) as job:
        until_running(job)
        assert "DumpLoadedClassList" in jvm_command(job.process.pid)
        folder.publish("a.xml", b"<a/>")
        # At a low priority, beside other tests.
        until(archives, "the archive", seconds=600)
        until(folder.deliveries, "a delivery", seconds=600)
        assert job.stop() == 0
    log = folder.log.read_text()
    assert log.index("starting Spark (local[2]) …") < log.index("ready: ") < log.index(" batch ")
    assert f"ready: {folder.path}/inbox/ → {folder.path}/outbox/" in log
    with running(folder) as job:
        until_running(job)
        assert f"SharedArchiveFile={archives()[0]}" in jvm_command(job.process.pid)
        folder.publish("b.xml", b"<a/>")
        until(lambda: len(folder.deliveries()) == 2, "a delivery", seconds=600)
        assert job.stop() == 0
    [archive] = archives()
    archive.chmod(0o600)
    archive.write_bytes(archive.read_bytes()[:100_000] + b"damaged")
    with running(folder) as job:
        folder.publish("c.xml", b"<a/>")
        until(lambda: len(folder.deliveries()) == 3, "a delivery", seconds=600)
        assert job.stop() == 0
    assert list(cache_folder().iterdir()) == [archive]


def test_own_options_of_the_jvm_replace_all_others(folder: Folder) -> None:
    own = 'config = { "spark.driver.extraJavaOptions" = "-Dmine=1" }'
    (folder.path / "tamis.toml").write_text(f'[spark]\nmaster = "local[2]"\n{own}\n')
    with running(folder) as job:
        until_running(job)
        command = jvm_command(job.process.pid)
        assert job.stop() == 0
    assert "-Dmine=1" in command
    assert not any(
        option in command for option in ("UsePerfData", "log4j2.configurationFile", "DumpLoadedClassList")
    )
