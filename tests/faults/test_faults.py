"""A job that is killed in every phase of a batch loses and doubles nothing, by the model in books.py."""

from pathlib import Path

from tamis.catalog import Catalog
from tests.helpers.books import KILLS, Books, counted, phases, strike
from tests.helpers.jobs import Folder, running, until_running
from tests.helpers.waiting import until


def test_nothing_is_lost_or_doubled_however_often_the_job_is_killed(tmp_path: Path) -> None:
    folder = Folder(tmp_path)
    with Catalog(folder.catalog) as catalog:
        books = Books(folder, catalog, seed=KILLS)
        for kill in counted("the inbox"):
            with running(folder) as job:
                books.change()
                if kill % 5 == 4:
                    # While it starts.
                    until(lambda: folder.status() is not None, "the start")
                else:
                    until_running(job)
                moments = phases(folder)
                books.publish(20)
                books.change()
                until(moments[kill % len(moments)], f"the moment of kill {kill}")
                strike(job, kill)
                books.publish(3)
        with running(folder) as job:
            until_running(job)
            expected = len(books.messages) + len(books.broken)
            until(lambda: folder.read() == expected, "all messages")
            assert job.stop() == 0
    books.check()
