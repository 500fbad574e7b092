"""What becomes of a dead worker's jobs, as time goes down the page."""

from rota import WorkerConfig
from website.pictures.drawing import Drawing

FIRST, BASE, SECOND = 90, 260, 430
"""Where the lines of time of the two workers and of the database are."""


def drawn() -> str:
    """The picture."""
    settings = WorkerConfig()
    every, timeout = round(settings.heartbeat), round(settings.session_timeout)
    picture = Drawing(
        520,
        560,
        "A worker dies; another one takes its jobs over, and the dead one's late settlement is refused",
    )
    for x, name, kind in (
        (FIRST, "worker 1", "blue"),
        (BASE, "database", "warm"),
        (SECOND, "worker 2", "blue"),
    ):
        picture.box((x - 60, 20), (120, 36), [name], kind=kind)
    picture.arrow((FIRST, 56), (FIRST, 236), bare=True)
    picture.arrow((FIRST, 236), (FIRST, 452), bare=True, kind="dashed")
    picture.arrow((BASE, 56), (BASE, 540), bare=True)
    picture.arrow((SECOND, 56), (SECOND, 540), bare=True)

    picture.arrow((FIRST, 90), (BASE, 90), says="claims job 7", at=(175, 84))
    for top in (124, 154, 184):
        picture.arrow((FIRST, top), (BASE, top), says="I live", at=(175, top - 6))
    picture.text((BASE + 8, 158), f"every {every} seconds", kind="small")
    picture.box((FIRST - 62, 216), (124, 40), ["killed, or frozen"], kind="bad", words="")

    picture.arrow((BASE + 12, 190), (BASE + 12, 306), kind="bad", bare=True)
    picture.text((BASE + 20, 244), f"silent for {timeout} s:", kind="small")
    picture.text((BASE + 20, 260), "its session is dead", kind="small")

    picture.arrow((SECOND, 320), (BASE, 320), says="rescues its jobs", at=(345, 314))
    picture.text((BASE - 8, 324), "job 7 is available", kind="small", anchor="end")
    picture.arrow((BASE, 356), (SECOND, 356), says="claims job 7", at=(345, 350))
    picture.box((SECOND - 62, 376), (124, 36), ["job 7 runs"], kind="good", words="")
    picture.arrow(
        (FIRST, 452), (BASE - 12, 452), kind="bad", says="awake: “job 7 is done”", at=(170, 446)
    )
    picture.text((BASE - 14, 470), "refused: the lease is", kind="small", anchor="end")
    picture.text((BASE - 14, 485), "no longer its own", kind="small", anchor="end")
    picture.arrow((SECOND, 510), (BASE, 510), kind="good", says="job 7 is done", at=(345, 504))
    picture.text((BASE - 14, 514), "completed, once", kind="small", anchor="end")
    return picture.svg()
