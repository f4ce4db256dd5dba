"""The wheel in an empty environment: first alone, then with the extra `serve`."""

import os
import re
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import httpx
import pytest

from tests.helpers import ROOT
from tests.helpers.servers import free_port
from tests.helpers.waiting import until

UV = str(Path(sys.executable).with_name("uv"))

CONSTRAINTS = ("--constraints", str(ROOT / "requirements.lock"))


class Installed:
    """An environment with the wheel, and a folder to work in, away from the sources."""

    def __init__(self, environment: Path, folder: Path, wheel: Path) -> None:
        """An empty environment, then the wheel alone."""
        self.folder = folder
        self.wheel = wheel
        self._bin = environment / "bin"
        self.environment = {
            name: value
            for name, value in os.environ.items()
            if name not in ("PYTHONPATH", "VIRTUAL_ENV") and not name.startswith("TAMIS_")
        } | {"PYSPARK_PYTHON": str(self._bin / "python"), "SPARK_LOCAL_IP": "127.0.0.1"}
        subprocess.run([UV, "venv", "--quiet", "--python", sys.executable, str(environment)], check=True)
        self.install(str(wheel))

    def install(self, what: str) -> None:
        """Install a wheel, with extras or without."""
        command = [UV, "pip", "install", "--quiet", "--python", str(self._bin / "python"), *CONSTRAINTS, what]
        subprocess.run(command, check=True, env=self.environment)

    def python(self, program: str) -> "subprocess.CompletedProcess[str]":
        return self._run([str(self._bin / "python"), "-c", program])

    def tamis(self, *arguments: str) -> "subprocess.CompletedProcess[str]":
        return self._run([str(self._bin / "tamis"), *arguments])

    def _run(self, command: list[str]) -> "subprocess.CompletedProcess[str]":
        return subprocess.run(command, cwd=self.folder, env=self.environment, capture_output=True, text=True)

    @contextmanager
    def started(self, *arguments: str) -> Iterator["subprocess.Popen[bytes]"]:
        """A command that runs until a signal ends it."""
        with (self.folder / "log").open("ab") as log:
            command = [str(self._bin / "tamis"), *arguments]
            process = subprocess.Popen(command, cwd=self.folder, env=self.environment, stdout=log, stderr=log)
            try:
                yield process
                process.send_signal(signal.SIGTERM)
                assert process.wait(timeout=180) == 0, (self.folder / "log").read_text()
            finally:
                if process.poll() is None:
                    process.kill()
                    process.wait()


@pytest.fixture(scope="module")
def installed(tmp_path_factory: pytest.TempPathFactory) -> Installed:
    # A separate `make`, also below `make test`.
    plain = {name: value for name, value in os.environ.items() if not name.startswith(("MAKE", "MFLAGS"))}
    subprocess.run(["make", "--silent", "wheel"], cwd=ROOT, env=plain, check=True)
    [wheel] = (ROOT / "dist").glob("*.whl")
    assert "-abi3-" in wheel.name
    folder = tmp_path_factory.mktemp("work")
    (folder / "order.xml").write_text("<order><item price='99'/></order>")
    return Installed(tmp_path_factory.mktemp("environment"), folder, wheel)


def test_the_wheel_alone_checks_matches_and_transforms(installed: Installed) -> None:
    done = installed.tamis("check", "//item[ @price > 50 ]")
    assert (done.returncode, done.stdout) == (0, "//item[@price>50]\n"), done
    done = installed.tamis("match", "-q", "//item[@price > 50]", "-q", "//none", "order.xml")
    assert (done.returncode, done.stdout) == (0, "order.xml\t1\n"), done
    done = installed.tamis("transform", "-q", "for $i in //item return <i>{$i/@price}</i>", "order.xml")
    assert (done.returncode, done.stdout.splitlines()[0]) == (0, "order.xml\t1"), done
    listed = installed.python("import importlib.metadata as m; print(*(d.name for d in m.distributions()))")
    heavy = {"sqlalchemy", "alembic", "pyspark", "pandas", "fastapi", "pydantic", "httpx", "lxml"}
    assert heavy.isdisjoint(name.lower() for name in listed.stdout.split()), listed.stdout


@pytest.mark.parametrize(
    ("arguments", "extra"),
    [
        (["subscriptions", "list"], "catalog"),
        (["run"], "spark"),
        (["serve"], "serve"),
        (["bench", "filter", "--docs", ".", "--queries", "order.xml"], "bench"),
    ],
    ids=lambda value: value if isinstance(value, str) else value[0],
)
def test_the_wheel_alone_names_the_extra_that_a_command_needs(
    installed: Installed, arguments: list[str], extra: str
) -> None:
    done = installed.tamis(*arguments)
    assert done.returncode == 1, done
    assert f"pip install 'tamis[{extra}]'" in done.stderr, done
    assert "Traceback" not in done.stderr


def test_the_wheel_alone_names_the_extra_that_an_import_needs(installed: Installed) -> None:
    for package, extra in (("catalog", "catalog"), ("spark", "spark"), ("client", "client")):
        program = f"import tamis\ntry: import tamis.{package}\nexcept tamis.TamisError as error: print(error)"
        done = installed.python(program)
        assert f"missing-extra: tamis.{package} needs " in done.stdout, done
        assert f"pip install 'tamis[{extra}]'" in done.stdout, done


def test_the_wheel_with_its_extra_runs_and_serves(installed: Installed) -> None:
    installed.install(f"{installed.wheel}[serve]")
    folder, port = installed.folder, free_port()
    (folder / "tamis.toml").write_text(
        f"interval = 0.2\n[spark]\nmaster = 'local[2]'\n[serve]\nport = {port}\njob = false\n"
        "[[sink]]\nform = 'jsonl'\npath = 'outbox'\n"
    )
    (folder / "inbox").mkdir()
    added = installed.tamis("subscriptions", "add", "//item[@price > 50]", "--subscriber", "ann")
    assert added.returncode == 0, added
    with installed.started("run"):
        (folder / "order.xml").rename(folder / "inbox" / "order.xml")
        outbox = folder / "outbox"

        def delivered() -> list[str]:
            texts = [file.read_text() for file in outbox.rglob("*.jsonl")]
            return [text for text in texts if "order.xml" in text]

        [delivery] = until(delivered, "a delivery")
        assert "price='99'" in delivery

    with installed.started("serve"), httpx.Client(base_url=f"http://127.0.0.1:{port}") as client:

        def page() -> httpx.Response | None:
            try:
                return client.get("/")
            except httpx.TransportError:
                return None

        waiting = re.findall(r'(?:src|href)="(/page/[^"]+)"', until(page, "the page").text)
        assert waiting
        found = {"/"}
        while waiting:
            path = waiting.pop()
            if path not in found:
                found.add(path)
                answer = client.get(path)
                assert answer.status_code == 200, path
                if path.endswith(".js"):
                    modules = re.findall(r'from "(\.[^"]+)"', answer.text)
                    waiting += [answer.url.join(name).path for name in modules]
        scripts = [name for name in found if name.endswith(".js")]
        assert len(scripts) == len(list((ROOT / "python/tamis/service/page/js").rglob("*.js")))
