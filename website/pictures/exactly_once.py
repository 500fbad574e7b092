"""How `ctx.transaction()` makes effects happen exactly once."""

from website.pictures.drawing import Drawing


def drawn() -> str:
    """The picture."""
    picture = Drawing(
        520,
        470,
        "One transaction holds the handler's writes and the job's completion, which needs the job's lease",
    )
    picture.text((20, 30), "with ctx.transaction() as tx:", kind="code")
    picture.box((20, 44), (480, 176), kind="frame")
    picture.text((34, 66), "one transaction", kind="small")
    picture.box(
        (40, 78),
        (440, 48),
        ["UPDATE account SET cents = cents + 100"],
        kind="blue",
        words="code",
        small=["what your handler writes"],
    )
    picture.arrow((260, 126), (260, 150))
    picture.box(
        (40, 150),
        (440, 54),
        ["the job's completion"],
        kind="warm",
        small=["deletes the job's lease, if this worker still holds it"],
    )
    picture.arrow(
        (140, 220),
        (140, 276),
        kind="good",
        says="the lease was there",
        at=(130, 252),
        anchor="middle",
    )
    picture.arrow(
        (380, 220),
        (380, 276),
        kind="bad",
        says="it was not: LeaseLost",
        at=(388, 252),
        anchor="middle",
    )
    picture.box(
        (20, 276),
        (232, 84),
        ["COMMIT"],
        kind="good",
        small=["account + 100, job completed:", "no other worker runs it again"],
    )
    picture.box(
        (268, 276),
        (232, 84),
        ["ROLLBACK"],
        kind="bad",
        small=["nothing of it is stored; another", "worker has the job, and does it"],
    )
    picture.text((20, 396), "A crash at any moment leaves both, or neither.")
    picture.text(
        (20, 424),
        "What leaves the database (a mail, a payment) cannot be rolled back:",
        kind="small",
    )
    picture.text(
        (20, 442),
        "give it the job's id as its idempotency key, so that a repetition is noticed there.",
        kind="small",
    )
    return picture.svg()
