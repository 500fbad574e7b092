"""A table on the screen that takes new rows without losing its place."""

from collections.abc import Sequence
from typing import ClassVar, TypeVar

from rich.text import Text
from textual.binding import BindingType
from textual.widgets import DataTable

from rota.top.columns import Cell, Column, fitted, placed

Row = TypeVar("Row")


class Grid(DataTable[Text]):
    """Rows under headings, as wide as the terminal; the arrow keys move the cursor."""

    # The columns all fit, so these keys are free to mean rows.
    BINDINGS: ClassVar[list[BindingType]] = [
        ("home", "scroll_top", "first"),
        ("end", "scroll_bottom", "last"),
    ]

    def __init__(self, *, id: str) -> None:  # noqa: A002 - textual's name
        super().__init__(id=id, cursor_type="row", cell_padding=0, zebra_stripes=False)
        self._headings: list[tuple[str, int]] = []
        self._keys: list[str] = []
        self._cells: list[list[Text]] = []

    @property
    def selected(self) -> str | None:
        """The key of the row under the cursor."""
        return self._keys[self.cursor_row] if self.cursor_row < len(self._keys) else None

    def show(
        self, columns: Sequence[Column[Row]], rows: Sequence[tuple[str, Row]], *, width: int
    ) -> None:
        """Show these rows, which are pairs of a key and what the columns make their cells of."""
        places = placed(columns, width)
        headings = [(place.title, place.width) for place in places]
        keys = [key for key, _ in rows]
        cells = [
            [
                _text(place.column.cell(row), place.width, right=place.column.figures)
                for place in places
            ]
            for _, row in rows
        ]
        if headings == self._headings and keys == self._keys:
            self._update(cells)
        else:
            self._rebuild(
                [
                    (
                        Text(fitted(place.title, place.width, right=place.column.figures)),
                        place.width,
                    )
                    for place in places
                ],
                keys,
                cells,
            )
        self._headings, self._keys, self._cells = headings, keys, cells

    def _update(self, cells: list[list[Text]]) -> None:
        for y, (new, old) in enumerate(zip(cells, self._cells, strict=True)):
            for x, (cell, before) in enumerate(zip(new, old, strict=True)):
                if cell != before or cell.style != before.style:
                    self.update_cell_at((y, x), cell)  # type: ignore[arg-type]  # a coordinate

    def _rebuild(
        self, headings: list[tuple[Text, int]], keys: list[str], cells: list[list[Text]]
    ) -> None:
        selected, place = self.selected, self.scroll_y
        self.clear(columns=True)
        for number, (title, width) in enumerate(headings):
            self.add_column(title, width=width, key=str(number))
        for key, line in zip(keys, cells, strict=True):
            self.add_row(*line, key=key)
        if selected in keys:
            self.move_cursor(row=keys.index(selected), animate=False, scroll=False)
            self.scroll_to(y=place, animate=False)


def _text(cell: Cell, width: int, *, right: bool) -> Text:
    # One blank at least between a name and what comes after it.
    shown = fitted(cell.text, width, right=True) if right else fitted(cell.text, width - 1) + " "
    return Text(shown, style=cell.style, no_wrap=True)
