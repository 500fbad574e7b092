"""The diagram of states is what the code does."""

from tests.docs.diagram import DIAGRAM, PAGE, written


def test_the_diagram_is_up_to_date() -> None:
    """The page shows the moves of rota/states.py; `python -m tests.docs.diagram` draws them anew."""
    page = PAGE.read_text(encoding="utf-8")
    assert DIAGRAM.search(page)
    assert written(page) == page
