"""The section of the peers is written where the page of the benchmarks lies."""

from pathlib import Path

from benchmarks.peers import pages


def test_the_page_has_a_place_for_the_field() -> None:
    """`make peers ARGS="--docs docs"` finds the page and its two marks before it starts to measure.

    Measuring takes half an hour.
    """
    pages.check(Path("docs"))
