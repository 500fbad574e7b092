"""The test kit: real SQL, in the transaction that a test rolls back.

With pytest there is the fixture `rota_test`; with unittest, `Kit(connection)`.
docs/guides/testing.md shows it.
"""

from rota.testing.committed import Committed
from rota.testing.jobs import EnqueuedJob
from rota.testing.kit import Kit
from rota.testing.runs import Run, Runs
from rota.testing.shards import ShardKits, kit_of

__all__ = ["Committed", "EnqueuedJob", "Kit", "Run", "Runs", "ShardKits", "kit_of"]
