"""One call for many jobs, and an error in one of them that costs the others nothing."""

import logging
import tempfile

from rota import Rota, State, WorkerConfig
from rota.worker import Worker

rota = Rota()
calls: list[int] = []


@rota.task(batch=100, within=0.5, max_attempts=1, store_result=True)
async def count_words(texts: list[str]) -> list[int | ValueError]:
    """Count the words of each text; a text without words is an error of its own."""
    calls.append(len(texts))
    return [len(text.split()) or ValueError("nothing to count") for text in texts]


def main() -> None:
    """Run a thousand jobs."""
    logging.basicConfig(level=logging.ERROR)
    with tempfile.TemporaryDirectory() as folder, rota:
        rota.use(f"sqlite:///{folder}/rota.db")
        texts = ["", *("word " * n for n in range(1, 1000))]
        ids = count_words.enqueue_many([(text,) for text in texts])
        Worker(rota, WorkerConfig(drain=True)).run()
        print(f"{len(ids)} jobs, {len(calls)} calls")
        print(f"the last one: {rota.job(ids[-1]).record().result} words")
        failed = [job for job in ids if rota.job(job).status is State.DISCARDED]
        message = rota.job(failed[0]).record().errors[0].message
        print(f"{len(failed)} failed: {message}")


if __name__ == "__main__":
    main()
