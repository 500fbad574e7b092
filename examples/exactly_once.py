"""Effects exactly once: a handler fails, and a worker dies, in the worst moment; the sum is right."""

import logging
import os
import subprocess
import sys
import tempfile

from rota import Backoff, Context, Rota, WorkerConfig
from rota.worker import Worker

rota = Rota()

PAYMENTS = 10


@rota.task(retry=Backoff(first=0.05, factor=1, jitter=0))
def pay_in(ctx: Context, cents: int) -> None:
    """Add to the account; some attempts fail after they have written."""
    with ctx.transaction() as tx:
        tx.execute("UPDATE account SET cents = cents + ?", [cents])
        if ctx.attempt == 1:
            if "DIE" in os.environ:
                os._exit(9)  # like a power cut: the worker is gone in the middle of the block
            message = "it failed after it had written"
            raise ConnectionError(message)


def main() -> None:
    """Let a worker die, and another one do the work."""
    logging.basicConfig(level=logging.CRITICAL)
    with tempfile.TemporaryDirectory() as folder, rota:
        url = f"sqlite:///{folder}/rota.db"
        rota.use(url)
        with rota.transaction() as tx:
            tx.execute("CREATE TABLE account (cents integer)")
            tx.execute("INSERT INTO account VALUES (0)")
        pay_in.enqueue_many([(100,)] * PAYMENTS)

        dying = {**os.environ, "DIE": "1", "ROTA_DATABASE_URL": url}
        died = subprocess.run([sys.executable, __file__, "work"], env=dying, check=False)
        print(f"the first worker ended with {died.returncode}; the account has {balance()}")

        Worker(rota, WorkerConfig(drain=True)).run()
        attempts = sum(rota.job(number).record().attempt for number in range(1, PAYMENTS + 1))
        print(f"{PAYMENTS} payments of 100 in {attempts} attempts; the account has {balance()}")


def balance() -> int:
    """The cents in the account."""
    with rota.transaction() as tx:
        [(cents,)] = tx.execute("SELECT cents FROM account").fetchall()
        return int(cents)


if __name__ == "__main__":
    if "work" in sys.argv:
        Worker(rota, WorkerConfig(drain=True, session_timeout=1.0)).run()
    else:
        main()
