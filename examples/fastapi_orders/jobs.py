"""The service's jobs: it only enqueues them; `rota worker fastapi_orders.jobs:rota` runs them."""

import asyncio

from rota import Context, Rota

rota = Rota()


@rota.task(queue="orders", store_result=True)
async def pack(ctx: Context, order: int, items: int) -> str:
    """Pretend to pack an order; the parcel's number."""
    for packed in range(1, items + 1):
        await asyncio.sleep(0.5)
        ctx.progress(packed / items, f"{packed} of {items} items packed")
    return f"parcel-{order}"
