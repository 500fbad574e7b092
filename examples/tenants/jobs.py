"""Exports for tenants: as many at once as the tenant's plan allows, in turns with other tenants."""

import asyncio
from collections.abc import Iterable
from dataclasses import dataclass

from rota import Limit, Rota

rota = Rota()


@dataclass(frozen=True)
class Plan:
    """What a tenant pays for."""

    name: str
    exports_at_once: int


FREE, PRO = Plan("free", 1), Plan("pro", 3)


@rota.task(queue="exports", fair="tenant:{tenant}", store_result=True)
async def export(tenant: str, month: int) -> str:
    """Pretend to export a month of a tenant's data; the file's name."""
    await asyncio.sleep(0.005)
    return f"{tenant}-{month}.csv"


def order_exports(tenant: str, plan: Plan, months: Iterable[int]) -> None:
    """Enqueue exports under a plan's limit, which also holds for what the tenant ordered before."""
    limit = Limit("exports:{tenant}", running=plan.exports_at_once)
    export.using(limit=limit).enqueue_many((tenant, month) for month in months)
