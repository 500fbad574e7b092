"""Charts, also with many lines and long bars."""

import re

import pytest

from rota.measure.reports.charts import LINE, STEPS, _apart, _figure, _keys, draw, legend, picture
from rota.measure.reports.report import Bars, Lines, Series


def lines(
    count: int, *, spread: bool = False, factor: float = 1.0
) -> tuple[Lines, dict[str, Series]]:
    """So many lines, each `factor` times as high as the line before."""
    series = {
        f"design {n}": Series("ms", (1.0, 2.0, 3.0), (1.0 * factor**n,) * 3) for n in range(count)
    }
    return Lines("Title", "seconds", "ms", tuple(series), spread=spread), series


def test_few_lines_have_a_legend() -> None:
    """The chart itself does not name its lines."""
    chart, series = lines(4)
    assert [key.name for key in legend(chart)] == list(series)
    assert "design 1" not in draw(chart, series, 0)


def test_many_lines_are_named_at_their_ends() -> None:
    """Each name stands there once, and there is no legend."""
    chart, series = lines(17)
    assert legend(chart) == []
    svg = draw(chart, series, 0)
    for name in series:
        assert len(re.findall(rf">{name}<", svg)) == 1
    assert picture(chart, series).startswith(b"\x89PNG")


def test_no_two_lines_look_alike() -> None:
    """As many as there are designs on databases."""
    keys = _keys([f"design {n}" for n in range(28)])
    assert len({(key.colour, key.dashes) for key in keys}) == 28


def test_names_do_not_meet() -> None:
    """Names lie a gap apart, within the chart, in the lines' order, and near their lines."""
    found = _apart([0.0, 0.0, 0.0, 0.5, 0.51, 1.0], 0.1)
    assert found == pytest.approx([0.0, 0.1, 0.2, 0.455, 0.555, 1.0])
    crowded = _apart([0.9] * 8, 0.1)
    assert crowded == pytest.approx([0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 1.0])
    assert _apart([], 0.1) == []


def test_a_bar_that_is_not_there_has_no_label() -> None:
    """A zero would say that something was measured."""
    chart = Bars("T", "jobs", {"a": {"x": 5.0, "y": 7.0}, "b": {"x": 3.0}})
    (axes,) = _figure(chart, {}).axes
    assert [text.get_text() for text in axes.texts] == ["5", "7", "3", ""]


def test_many_names_have_room() -> None:
    """The chart gets as high as its names need."""
    chart, series = lines(40)
    height = float(re.findall(r'viewBox="0 0 [\d.]+ ([\d.]+)"', draw(chart, series, 0))[0])
    assert height > 40 * LINE


def scale(chart: Lines, series: dict[str, Series]) -> list[str]:
    """The numbers at the axes."""
    return re.findall(r">([\d.,]+)</text>", draw(chart, series, 0))


def test_lines_that_are_far_apart() -> None:
    """The axis is logarithmic where that is wanted and needed; zero is still shown."""
    far = lines(4, spread=True, factor=10)
    assert {"1", "10", "100"} <= set(scale(*far))
    assert "10" not in scale(*lines(4, factor=10))
    assert "10" not in scale(*lines(4, spread=True, factor=1.2))
    chart, series = far
    with_zero = {**series, "design 0": Series("ms", (1.0, 2.0), (0.0, None))}
    assert {"0", "10", "100"} <= set(scale(chart, with_zero))
    nothing = {name: Series("ms", (1.0,), (None,)) for name in series}
    assert draw(chart, nothing, 0).startswith("<svg")


def test_parts_are_stacked() -> None:
    """A label's parts are one bar, which ends with their sum; a single part is named, too."""
    parts = Bars("T", "jobs", {"a": {"x": 1.0, "y": 2.0}, "b": {"x": 37.0}}, stacked=True)
    svg = draw(parts, {}, 0)
    assert ">38<" in svg
    assert ">2<" in svg
    assert ">37<" not in svg
    assert [key.colour for key in legend(parts)] == [STEPS[0], STEPS[-1]]
    alone = Bars("T", "jobs", {"2 times": {"x": 1.0}}, stacked=True)
    assert [key.name for key in legend(alone)] == ["2 times"]
    assert legend(Bars("T", "jobs", {"rate": {"x": 1.0}})) == []


def test_parts_of_a_whole_need_no_sum() -> None:
    """Where all bars end at 100, only the axis says so."""
    shares = {"a": {"x": 40.0, "y": 10.0}, "b": {"x": 60.0, "y": 90.0}}
    svg = draw(Bars("T", "percent", shares, stacked=True), {}, 0)
    assert svg.count(">100<") == 1


@pytest.mark.parametrize("label", ["x", "a name that is too long to stand beside others " * 2])
def test_each_part_begins_where_the_part_before_ends(label: str) -> None:
    """Upright bars and lying bars are stacked without gaps."""
    chart = Bars("T", "jobs", {"a": {label: 2.0}, "b": {label: 3.0}, "c": {label: 4.0}}, True)
    [axes] = _figure(chart, {}).axes
    boxes = [patch.get_extents().transformed(axes.transData.inverted()) for patch in axes.patches]
    side = 0 if len(label) > 1 else 1
    edges = [edge for box in boxes for edge in (box.min[side], box.max[side])]
    assert edges == pytest.approx([0, 2, 2, 5, 5, 9], abs=1e-6)


def test_numbers_of_jobs_that_are_far_apart() -> None:
    """Both axes are logarithmic where that is wanted, also with few sizes."""
    series = {"a": Series("ms", (10_000.0, 100_000.0), (1.0, 300.0), "jobs")}
    said = scale(Lines("T", "jobs", "ms", ("a",), spread=True), series)
    assert {"10,000", "100,000", "1", "10", "100"} <= set(said)
    assert "10" not in scale(Lines("T", "jobs", "ms", ("a",)), series)
