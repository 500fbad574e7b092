"""A queue as the code that stops and starts it sees it."""

from typing import TYPE_CHECKING

from rota.model.options import check_name

if TYPE_CHECKING:
    from rota.app.app import Rota


class QueueHandle:
    """Stops a queue and lets it go on, for all workers. Made by `Rota.queue`."""

    __slots__ = ("_app", "name")

    def __init__(self, app: "Rota", name: str) -> None:
        self._app = app
        self.name = check_name(name, "queue")

    def __repr__(self) -> str:
        return f"<QueueHandle {self.name}>"

    def pause(self) -> bool:
        """Let no worker take its jobs; those that run go on. Whether it was not paused before."""
        return self._app.run(self._app.store.pause(self.name))

    async def apause(self) -> bool:
        """`pause` for async code."""
        return await self._app.arun(self._app.store.pause(self.name))

    def resume(self) -> bool:
        """Let workers take its jobs again. Whether it was paused."""
        return self._app.run(self._app.store.resume(self.name))

    async def aresume(self) -> bool:
        """`resume` for async code."""
        return await self._app.arun(self._app.store.resume(self.name))
