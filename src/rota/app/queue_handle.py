"""A queue as the code that stops and starts it sees it."""

from rota.database.database import Database
from rota.model.options import check_name


class QueueHandle:
    """Stops a queue and lets it go on, for all workers. Made by `Rota.queue`."""

    __slots__ = ("_database", "name")

    def __init__(self, database: Database, name: str) -> None:
        self._database = database
        self.name = check_name(name, "queue")

    def __repr__(self) -> str:
        return f"<QueueHandle {self.name}>"

    def pause(self) -> bool:
        """Let no worker take its jobs; those that run go on. Whether it was not paused before."""
        return self._database.run(self._database.store.pause(self.name))

    async def apause(self) -> bool:
        """`pause` for async code."""
        return await self._database.arun(self._database.store.pause(self.name))

    def resume(self) -> bool:
        """Let workers take its jobs again. Whether it was paused."""
        return self._database.run(self._database.store.resume(self.name))

    async def aresume(self) -> bool:
        """`resume` for async code."""
        return await self._database.arun(self._database.store.resume(self.name))
