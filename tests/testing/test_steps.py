"""Steps, sleeps and signals in a test's own transaction."""

from typing import Any

from rota import Context, Retry, Rota, SignalTimeout, State
from rota.testing import Kit


def test_a_process_of_days(app: Rota, kit: Kit) -> None:
    """It sleeps until time has gone on, waits until it is told, and goes on where it was."""
    ran: list[str] = []

    def pay() -> int:
        ran.append("pay")
        return 7

    @app.task(name="order", store_result=True)
    def order(ctx: Context) -> list[Any]:
        charge = ctx.step("charge", pay)
        if ctx.attempt == 1:
            raise Retry(after=0)
        ctx.sleep(3 * 86400)
        return [charge, ctx.wait_for("approved", timeout=86400)]

    job = order.enqueue()
    assert kit.drain(due="now").snoozed == 1
    assert [one.state for one in job.steps()] == ["done", "asleep"]
    assert kit.drain().snoozed == 0
    kit.travel(days=3)
    assert kit.drain().snoozed == 1
    job.signal("approved", "yes")
    assert kit.drain().completed == 1
    assert job.result(0) == [7, "yes"]
    assert ran == ["pay"]


def test_all_that_is_to_come(app: Rota, kit: Kit) -> None:
    """due="all" ends sleeps, and waits that end, one by one; a wait without an end goes on."""

    @app.task(name="order")
    async def order(ctx: Context) -> None:
        await ctx.sleep(86400)
        try:
            await ctx.wait_for("approved", timeout=86400)
        except SignalTimeout:
            await ctx.wait_for("for ever")

    job = order.enqueue()
    for _ in range(4):
        kit.drain(due="all")
    assert job.status is State.SCHEDULED
    assert [one.state for one in job.steps()] == ["done", "timed out", "waiting"]
