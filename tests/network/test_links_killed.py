"""A broker that is killed at any step it takes on files loses and doubles nothing."""

import subprocess
import sys

import pytest

from tests.helpers import ROOT


@pytest.mark.parametrize("who", ["sender", "receiver"])
def test_killed_at_each_step(who: str) -> None:
    command = [sys.executable, "-m", "tests.helpers.link_killed", who]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert int(done.stdout) > 20
