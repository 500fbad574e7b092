"""A benchmark's local clusters: two processes that run handlers, and what they run without Rota."""

import os
import secrets
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from rota.errors import ConfigError
from rota.measure.bench.tasks import take_each

NODES = 2
"""Processes of a cluster, with a thread each."""


@dataclass(frozen=True, slots=True)
class Cluster:
    """A cluster that is there.

    Attributes:
        engine: `dask` or `ray`.
        address: What a worker is told.
        bare: Makes calls in tasks of the engine's own, until the last one has ended: a task for
            each bundle, and a call for each of the seconds in it.
    """

    engine: str
    address: str
    bare: Callable[[Sequence[Sequence[float]]], None]


@contextmanager
def cluster(engine: str) -> Iterator[Cluster]:
    """Begin and end one.

    Raises:
        ConfigError: The engine is not installed.
    """
    try:
        with ENGINES[engine]() as begun:
            yield begun
    except ImportError as error:
        message = f"this benchmark needs {engine}: pip install 'rota[{engine}]'"
        raise ConfigError(message) from error


@contextmanager
def _dask() -> Iterator[Cluster]:
    import distributed

    untyped: Any = distributed
    # Without an address its page would be at a port that another cluster may have.
    options = {"threads_per_worker": 1, "dashboard_address": "127.0.0.1:0", "silence_logs": 40}
    with untyped.LocalCluster(n_workers=NODES, **options) as local:

        def bare(bundles: Sequence[Sequence[float]]) -> None:
            with untyped.Client(local, set_as_default=False) as client:
                client.gather(client.map(take_each, bundles, pure=False))

        yield Cluster("dask", local.scheduler_address, bare)


@contextmanager
def _ray() -> Iterator[Cluster]:
    # For the workers, too, which are processes of this one.
    if os.environ.setdefault("RAY_AUTH_MODE", "token") == "token":
        os.environ.setdefault("RAY_AUTH_TOKEN", secrets.token_hex(32))
    import ray

    ray.init(
        address="local",
        num_cpus=NODES,
        include_dashboard=False,
        log_to_driver=False,
        configure_logging=False,
    )
    try:
        task = ray.remote(take_each)

        def bare(bundles: Sequence[Sequence[float]]) -> None:
            ray.get([task.remote(bundle) for bundle in bundles])

        yield Cluster("ray", ray.get_runtime_context().gcs_address, bare)
    finally:
        ray.shutdown()


ENGINES = {"dask": _dask, "ray": _ray}
"""How the cluster of each engine is begun."""
