"""Which cases of a table are run where the large tests are left out."""

from itertools import product

from tests.fixtures.large import few

CASES = {
    f"{kind}-{how}-{writes}": {"kind": kind, "how": how, "writes": writes}
    for kind, how, writes in product("abcd", ("commit", "rollback"), (True, False))
}


def test_each_value_occurs() -> None:
    """There are as many cases as the longest parameter has values, and pairs of values change."""
    chosen = [CASES[name] for name in few(CASES)]
    assert len(chosen) == len({case["kind"] for case in chosen}) == 4
    assert len({(case["how"], case["writes"]) for case in chosen}) == 4


def test_the_order_does_not_matter() -> None:
    """All processes of a run choose the same ones."""
    assert few(dict(reversed(CASES.items()))) == few(CASES)


def test_one_case_alone() -> None:
    """What is asked for by its name is run."""
    assert few({"one": {"kind": "a"}}) == ["one"]
    assert few({"plain": {}}) == []
