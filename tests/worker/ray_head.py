"""A Ray cluster of two processes on this machine, which ends when its standard input closes."""

import sys

import ray

ray.init(
    address="local",
    num_cpus=2,
    include_dashboard=False,
    log_to_driver=False,
    configure_logging=False,
    object_store_memory=80_000_000,
    _temp_dir=sys.argv[1],
)
print(ray.get_runtime_context().gcs_address, flush=True)  # noqa: T201 - who began it reads it
sys.stdin.read()
ray.shutdown()
