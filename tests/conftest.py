import pytest

from tests.helpers import Command


@pytest.fixture
def fabricsim(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> Command:
    return Command(capsys, monkeypatch)
