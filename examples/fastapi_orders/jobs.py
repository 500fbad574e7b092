"""The jobs of the service. `rota worker fastapi_orders.jobs:rota` runs them; the service only enqueues."""

import asyncio

from rota import Context, Rota

rota = Rota()


@rota.task(queue="orders", store_result=True)
async def pack(ctx: Context, order: int, items: int) -> str:
    """Pretend to pack an order; the parcel's number."""
    for packed in range(items):
        ctx.progress(packed / items, f"{packed} of {items} items packed")
        await asyncio.sleep(0.5)
    return f"parcel-{order}"
