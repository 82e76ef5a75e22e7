"""How a verb ends."""

import pytest
import typer

from cutile.cli.failing import WRONG_ARGUMENTS, fail


@pytest.mark.parametrize("status", [1, WRONG_ARGUMENTS])
def test_text_and_status(status, capsys):
    with pytest.raises(typer.Exit) as e:
        fail("there is no file x.py", status)
    assert e.value.exit_code == status
    assert capsys.readouterr() == ("", "there is no file x.py\n")
