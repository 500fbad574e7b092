"""A job's life, from the call of enqueue to the end of its retention."""

from website.pictures.drawing import Drawing

LEFT, WIDE = 120, 220
MIDDLE = LEFT + WIDE / 2


def drawn() -> str:
    """The picture."""
    picture = Drawing(
        520, 610, "The life of a job: enqueued in your transaction, claimed, run, settled, retained"
    )
    for top, who in ((60, "your"), (190, "the"), (340, "a"), (515, "the")):
        word = {60: "program", 190: "database", 340: "worker", 515: "database"}[top]
        picture.text((16, top), who, kind="small")
        picture.text((16, top + 16), word, kind="strong")
    for line in (128, 262, 452):
        picture.arrow((16, line), (504, line), kind="dashed", bare=True)

    picture.box(
        (LEFT, 24),
        (WIDE, 84),
        ["your transaction"],
        kind="blue",
        small=["INSERT INTO orders …", "enqueue: a row more", "COMMIT"],
    )
    picture.box(
        (LEFT, 172), (WIDE, 62), ["job log"], kind="warm", small=["available, in log order"]
    )
    picture.box((392, 172), (112, 62), ["timer"], small=["scheduled,", "retryable"])
    picture.box((LEFT, 296), (WIDE, 54), ["claim"], small=["a lease, many jobs at once"])
    picture.box((LEFT, 384), (WIDE, 48), ["your handler runs"], kind="blue")
    picture.box(
        (LEFT, 484),
        (WIDE, 68),
        ["finished"],
        kind="good",
        small=["completed, discarded, cancelled", "with result or errors"],
    )

    picture.arrow((MIDDLE, 108), (MIDDLE, 172), says="at once", at=(MIDDLE - 8, 150), anchor="end")
    picture.arrow((340, 66), (448, 66), (448, 172), says="with a delay", at=(440, 92), anchor="end")
    picture.arrow((392, 203), (340, 203), says="its time", at=(366, 196))
    picture.arrow((MIDDLE, 234), (MIDDLE, 296))
    picture.arrow((MIDDLE, 350), (MIDDLE, 384))
    picture.arrow((MIDDLE, 432), (MIDDLE, 484), says="settled", at=(MIDDLE - 8, 474), anchor="end")
    picture.arrow(
        (340, 408), (474, 408), (474, 234), says="an attempt failed:", at=(466, 382), anchor="end"
    )
    picture.text((466, 398), "again, later", kind="small halo", anchor="end")
    picture.arrow(
        (MIDDLE, 552),
        (MIDDLE, 588),
        says="a day later, or what you say: pruned",
        at=(MIDDLE + 10, 580),
        anchor="start",
    )
    return picture.svg()
