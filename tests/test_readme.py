"""What the README prints is what comes out."""

import re
import shlex
from pathlib import Path

import pytest

from tests.helpers import Command

README = (Path(__file__).parents[1] / "README.md").read_text()
SHOWN = re.findall(r"<!-- fabricsim (.*?) -->\n```\n(.*?)```\n", README, re.DOTALL)


def test_readme_shows_output() -> None:
    assert len(SHOWN) >= 2


@pytest.mark.parametrize(("command", "output"), SHOWN, ids=[command for command, _ in SHOWN])
def test_output_is_as_shown(command: str, output: str, fabricsim: Command) -> None:
    ran = fabricsim(*shlex.split(command))
    assert ran.status == 0
    assert ran.out == output
