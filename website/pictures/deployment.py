"""What runs where."""

from website.pictures.drawing import Drawing


def drawn() -> str:
    """The picture."""
    picture = Drawing(520, 400, "Your application and the workers, with one database between them")
    for number in range(3):
        picture.box((16 + 6 * number, 30 + 6 * number), (144, 80), [], kind="blue")
    picture.text((100, 80), "your application", kind="strong", anchor="middle")
    picture.text((100, 98), "web, scripts, SQL", kind="small", anchor="middle")

    picture.box((196, 20), (130, 250), kind="warm")
    picture.text((261, 46), "your database", kind="strong", anchor="middle")
    picture.box((212, 62), (98, 44), ["orders, …"], small=["your tables"], words="")
    picture.box(
        (212, 118),
        (98, 96),
        ["schema rota"],
        small=["jobs, results,", "queues, cron,", "sessions"],
        words="",
    )
    picture.text((261, 240), "PostgreSQL,", kind="small", anchor="middle")
    picture.text((261, 256), "or a SQLite file", kind="small", anchor="middle")

    for number in range(3):
        picture.box((350 + 6 * number, 30 + 6 * number), (144, 80), [], kind="blue")
    picture.text((434, 80), "workers", kind="strong", anchor="middle")
    picture.text((434, 98), "rota worker shop", kind="small", anchor="middle")

    picture.arrow((172, 84), (196, 84))
    picture.text((20, 144), "enqueues in its own", kind="small")
    picture.text((20, 160), "transactions", kind="small")
    picture.arrow((362, 76), (326, 76))
    picture.arrow((326, 98), (362, 98))
    picture.text((340, 144), "claim, run and settle jobs;", kind="small")
    picture.text((340, 160), "look after cron, retries,", kind="small")
    picture.text((340, 176), "and each other", kind="small")

    picture.box(
        (20, 306), (150, 60), ["dashboard"], small=["rota dashboard, or", "a route of your app"]
    )
    picture.box((186, 306), (150, 60), ["metrics"], small=["rota metrics,", "for Prometheus"])
    picture.box((352, 306), (150, 60), ["commands"], small=["rota jobs, top,", "doctor, migrate"])
    picture.arrow((95, 306), (95, 288), (230, 288), (230, 270), kind="dashed")
    picture.arrow((261, 306), (261, 270), kind="dashed")
    picture.arrow((427, 306), (427, 288), (292, 288), (292, 270), kind="dashed")
    picture.text((261, 388), "where you want them", kind="small", anchor="middle")
    return picture.svg()
