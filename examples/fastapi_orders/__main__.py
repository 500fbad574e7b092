"""The service and a worker beside it, until Ctrl-C: `python -m fastapi_orders`.

Its options are those of uvicorn.
"""

import signal
import subprocess
import sys

import uvicorn

WORKER = [sys.executable, "-m", "rota", "worker", "fastapi_orders.jobs:rota"]
SERVICE = ["fastapi_orders.service:app", "--timeout-graceful-shutdown=10"]

if __name__ == "__main__":
    signal.signal(signal.SIGTERM, lambda *_: sys.exit())
    # In a process group of its own: Ctrl-C is for this process, which then ends the worker.
    with subprocess.Popen(WORKER, process_group=0) as worker:
        try:
            uvicorn.main([*SERVICE, *sys.argv[1:]])
        finally:
            worker.terminate()
