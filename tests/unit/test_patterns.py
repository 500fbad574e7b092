"""Queues that a worker names by patterns."""

import pytest

from rota.model.patterns import is_pattern, meaning, meant, strange

KNOWN = ["mail-b", "default", "mail-a", "mail"]


@pytest.mark.parametrize(
    ("wanted", "expected"),
    [
        (["mail"], ["mail"]),
        (["new"], ["new"]),
        (["*"], KNOWN),
        (["mail-*"], ["mail-b", "mail-a"]),
        (["mail-[ac]", "new", "mail-*"], ["mail-a", "new", "mail-b"]),
        (["?ail"], ["mail"]),
        (["MAIL*"], []),
        (["mail", "*"], ["mail", "mail-b", "default", "mail-a"]),
        ([], []),
    ],
)
def test_what_patterns_mean(wanted: list[str], expected: list[str]) -> None:
    """Names mean themselves, patterns what exists; each queue once, in the order of what is wanted."""
    assert meant(wanted, KNOWN) == expected


def test_a_queue_whose_name_is_a_pattern() -> None:
    """It is among those that its own name means, although that would not match it."""
    assert meant(["a[b]"], ["a[b]", "ab", "abc"]) == ["a[b]", "ab"]


@pytest.mark.parametrize(
    ("queue", "expected"),
    [("mail", "mail"), ("mail-a", "mail-*"), ("default", "*"), ("mail-*", "mail-*")],
)
def test_what_means_a_queue(queue: str, expected: str) -> None:
    """A name comes before patterns, and of patterns the first."""
    assert meaning(["mail-*", "*", "mail"], queue) == expected
    assert meaning(["mail-*", "mail"], "other") is None


def test_what_is_a_pattern() -> None:
    """What has a `*`, a `?` or a `[`."""
    assert [one for one in ["*", "a?", "[a]", "a", "a]", "a.b", "^a$"] if is_pattern(one)] == [
        "*", "a?", "[a]",
    ]  # fmt: skip


def test_strange_names() -> None:
    """What means no queue at all is strange, and is told with the most similar name."""
    wanted = ["mail", "mial", "mail-*", "*", "video-*", "qqq", "fax-?"]
    assert strange(wanted, KNOWN) == {"mial": "mail", "video-*": None, "qqq": None, "fax-?": None}
    assert strange(["*"], []) == {"*": None}
