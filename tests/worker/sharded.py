"""An app with several databases that child processes import; `ROTA_SHARDS` says which."""

from rota import Rota

rota = Rota.shards(key="{tenant}")


@rota.task(name="there", executor="process", store_result=True)
def there() -> str:
    """Say where this runs, and put a job beside this one."""
    left.enqueue()
    return rota.here


@rota.task(name="left", queue="left")
def left() -> None:
    """Nothing: it is not run."""
