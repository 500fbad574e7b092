"""A table on the screen that takes new rows and leaves the cursor and the scrolling alone."""

from collections.abc import Sequence
from typing import ClassVar, TypeVar

from rich.text import Text
from textual.binding import BindingType
from textual.widgets import DataTable

from rota.top.columns import Cell, Column, fitted, padded

Row = TypeVar("Row")


class Grid(DataTable[Text]):
    """Rows under headings, as wide as the terminal; the arrow keys move the cursor."""

    # All columns fit, so these keys are free to move between rows.
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
        """Show these rows: pairs of a key and the value that the columns make cells of."""
        shown = fitted(columns, width)
        headings = [(column.title, column.width) for column in shown]
        keys = [key for key, _ in rows]
        cells = [
            [_text(fit.column.cell(row), fit.width, right=fit.column.figures) for fit in shown]
            for _, row in rows
        ]
        selected = self.selected
        if headings != self._headings:
            self.clear(columns=True)
            self._cells = []
            for number, fit in enumerate(shown):
                title = padded(fit.title, fit.width, right=fit.column.figures)
                self.add_column(Text(title), width=fit.width, key=str(number))
        self._fill(cells)
        self._headings, self._keys, self._cells = headings, keys, cells
        if selected in keys and keys.index(selected) != self.cursor_row:
            self.move_cursor(row=keys.index(selected), animate=False)

    def _fill(self, cells: list[list[Text]]) -> None:
        """Rows are known by their numbers, so that scrolling stays where it is when names move."""
        for y in range(len(cells), len(self._cells)):
            self.remove_row(str(y))
        for y, line in enumerate(cells):
            if y >= len(self._cells):
                self.add_row(*line, key=str(y))
                continue
            for x, (cell, before) in enumerate(zip(line, self._cells[y], strict=True)):
                if cell != before or cell.style != before.style:
                    self.update_cell(str(y), str(x), cell)


def _text(cell: Cell, width: int, *, right: bool) -> Text:
    # One blank at least between a name and what comes after it.
    shown = padded(cell.text, width, right=True) if right else padded(cell.text, width - 1) + " "
    return Text(shown, style=cell.style, no_wrap=True)
