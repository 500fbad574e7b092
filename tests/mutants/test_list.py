"""The list of mutants: that each can be tried."""

from tests.mutants.mutant import complaints, listed


def test_each_can_be_tried() -> None:
    """What it changes is in its file as often as is said, and its tests are there."""
    assert [said for one in listed() for said in complaints(one)] == []


def test_there_are_many() -> None:
    """A list that is read wrong is a short one; and no two have one purpose."""
    every = listed()
    assert len(every) >= 60
    assert len({(one.file, one.find, one.put) for one in every}) == len(every)
