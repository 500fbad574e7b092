"""Draw them all into `docs/pictures`."""

from website.pictures.all import FOLDER, PICTURES

if __name__ == "__main__":
    for name, drawn in PICTURES.items():
        (FOLDER / f"{name}.svg").write_text(drawn(), encoding="utf-8")
