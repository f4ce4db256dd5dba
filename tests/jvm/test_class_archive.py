"""The class archive: written once, in the background, and failures do no harm."""

import os
import stat
from pathlib import Path

import pytest

from tamis.jvm import class_archive
from tamis.jvm.class_archive import ClassArchive
from tests.helpers.waiting import until

MAKES = '#!/bin/sh\nfor a; do case $a in -XX:SharedArchiveFile=*) echo made > "${a#*=}";; esac; done\n'
FAILS = "#!/bin/sh\nexit 1\n"
HANGS = "#!/bin/sh\nexec sleep 600\n"


@pytest.fixture
def spark(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder like Spark's, a JVM that makes archives, and an empty cache."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.setenv("JAVA_HOME", str(tmp_path / "java"))
    (tmp_path / "java" / "bin").mkdir(parents=True)
    (tmp_path / "spark" / "jars").mkdir(parents=True)
    (tmp_path / "spark" / "jars" / "a.jar").write_text("a")
    set_java(MAKES)
    return tmp_path / "spark"


def set_java(script: str) -> None:
    java = Path(os.environ["JAVA_HOME"], "bin", "java")
    java.write_text(script)
    java.chmod(java.stat().st_mode | stat.S_IXUSR)


def new(spark: Path) -> ClassArchive:
    archive = ClassArchive.of(spark)
    assert archive is not None
    return archive


def made(spark: Path) -> Path:
    """Make the archive; its file."""
    archive = new(spark)
    archive.make("a.jar")
    finish(archive)
    [file] = files(".jsa")
    return file


def finish(archive: ClassArchive) -> None:
    """Wait for the process that makes it."""
    until(lambda: archive.is_done, "the end of the process")
    archive.poll()
    archive.close()


def files(suffix: str = "") -> list[Path]:
    return [file for file in class_archive.cache_folder().iterdir() if file.name.endswith(suffix)]


def test_the_first_job_makes_it_and_the_next_one_uses_it(spark: Path) -> None:
    assert any("DumpLoadedClassList" in option for option in new(spark).java_options)
    file = made(spark)
    later = new(spark)
    assert f"-XX:SharedArchiveFile={file}" in later.java_options
    assert not later.is_missing


def test_nothing_else_remains(spark: Path) -> None:
    before = new(spark)
    file = made(spark)
    before.close()
    assert files() == [file]


def test_jobs_that_make_it_together(spark: Path) -> None:
    both = [new(spark), new(spark)]
    for archive in both:
        archive.make("a.jar")
    for archive in both:
        finish(archive)
    assert [file.suffix for file in files()] == [".jsa"]


def test_other_jars_have_another_one(spark: Path) -> None:
    made(spark)
    (spark / "jars" / "b.jar").write_text("b")
    assert new(spark).is_missing


def test_a_jvm_that_cannot_make_one(spark: Path) -> None:
    set_java(FAILS)
    archive = new(spark)
    archive.make("a.jar")
    finish(archive)
    assert files() == []


def test_a_job_that_ends_before_it_is_made(spark: Path) -> None:
    set_java(HANGS)
    archive = new(spark)
    archive.make("a.jar")
    archive.close()
    assert files() == []


def test_a_cache_that_cannot_be_written(spark: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(spark / "jars" / "a.jar"))
    assert ClassArchive.of(spark) is None


def test_no_java(spark: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("JAVA_HOME", str(spark))
    assert ClassArchive.of(spark) is None


def test_unused_archives_are_removed(spark: Path) -> None:
    file = made(spark)
    os.utime(file, (0, 0))
    (spark / "jars" / "b.jar").write_text("b")
    new(spark).close()
    assert files() == []
