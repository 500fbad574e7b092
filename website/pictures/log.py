"""The job log, its cursor and holes: why no job is lost, and an open transaction delays nobody."""

from website.pictures.drawing import Drawing

TRANSACTIONS = (
    # name, when it begins and ends (None: still open), its jobs, its row
    ("A", 96, None, "enqueues job 1"),
    ("B", 156, 236, "job 2"),
    ("C", 216, None, "no job so far"),
    ("D", 276, 346, "job 3"),
)
NOW = 432
CELL, GAP = 92, 8


def drawn() -> str:
    """The picture."""
    picture = Drawing(
        520, 640, "The cursor passes transactions that are still open, and remembers them as holes"
    )
    picture.text((20, 30), "1. Four transactions begin, in this order", kind="strong")
    for number, (name, begins, ends, says) in enumerate(TRANSACTIONS):
        top = 46 + 34 * number
        width = (ends or NOW + 20) - begins
        picture.text((20, top + 18), f"transaction {name}", kind="small")
        picture.box((begins + 24, top), (width - 24, 26), [], kind="good" if ends else "frame")
        picture.text((begins + 34, top + 17), says, kind="small")
    for name, top in (("committed", 80), ("committed", 148)):
        picture.text(({80: 244, 148: 352}[top], top + 17), name, kind="small")
    for top in (46, 114):
        picture.text((448, top + 17), "open", kind="small")
    picture.arrow((NOW, 40), (NOW, 192), kind="bad dashed", bare=True)
    picture.text((NOW, 206), "a worker claims", kind="small", anchor="middle")

    picture.text(
        (20, 242), "2. The claim takes what it sees, and notes what it passes", kind="strong"
    )
    row(
        picture,
        262,
        [("A", "?", "frame"), ("B", "job 2", "good"), ("C", "?", "frame"), ("D", "job 3", "good")],
    )
    cursor(picture, 262, "cursor: after D")
    for left, name in ((0, "hole A"), (2, "hole C")):
        picture.text(
            (20 + left * (CELL + GAP) + CELL / 2, 334), name, kind="small", anchor="middle"
        )
    picture.text((20, 356), "Jobs 2 and 3 run now. Nobody waits for A and C.", kind="")

    picture.text((20, 402), "3. A commits. The next claim looks into the hole", kind="strong")
    row(
        picture,
        422,
        [("A", "job 1", "good"), ("B", "taken", "box"), ("C", "?", "frame"), ("D", "taken", "box")],
    )
    cursor(picture, 422, "cursor: after D")
    picture.arrow((66, 500), (66, 480), says="claimed", at=(66, 514))
    picture.text((266, 494), "hole C", kind="small", anchor="middle")

    picture.text((20, 552), "A cursor without holes loses job 1, or waits for A.", kind="")
    picture.text(
        (20, 574), "Rows are never updated or deleted one by one: a part of the log", kind=""
    )
    picture.text((20, 594), "that has been handed out as a whole is truncated.", kind="")
    return picture.svg()


def row(picture: Drawing, top: float, cells: list[tuple[str, str, str]]) -> None:
    """The log: a cell for each transaction, in the order in which they began."""
    for number, (name, says, kind) in enumerate(cells):
        at = (20 + number * (CELL + GAP), top)
        picture.box(at, (CELL, 52), [says], kind=kind, small=[name])


def cursor(picture: Drawing, top: float, says: str) -> None:
    """The cursor, after the last cell."""
    x = 20 + 4 * (CELL + GAP) - GAP / 2
    picture.arrow((x, top - 6), (x, top + 60), kind="blue", bare=True)
    picture.text((x + 8, top + 30), says, kind="small")
