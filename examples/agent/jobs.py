"""One conversation is one job. It goes on where it was, whatever restarts in between.

Each turn of the model and each use of a tool is a step: done once, and remembered. While a person
thinks about a refund, the job is a row in the database and takes no room in a worker.
"""

from datetime import timedelta

from rota import Context, Rota, SignalTimeout

from .model import Call, Message, think

rota = Rota()


@rota.task(queue="agents", store_result=True)
async def support(ctx: Context, question: str) -> str:
    """Answer a customer, with as many turns and tools as it takes."""
    messages = [Message("customer", question)]
    while (said := await ctx.step("think", think, messages)).call:
        messages += [said, Message("tool", await use(ctx, said.call))]
    return said.text


async def use(ctx: Context, call: Call) -> str:
    """What a tool says. Before money moves, a person must agree."""
    if call.tool == "look_up":
        return await ctx.step("look up", look_up, call.order)
    try:
        decision = await ctx.wait_for("decision", timeout=timedelta(days=2))
    except SignalTimeout:
        return "nobody has decided in time"
    if not decision["yes"]:
        return f"{decision['by']} has refused"
    async with ctx.step_transaction("refund") as tx:  # the row and its memory: one commit
        await tx.aexecute("INSERT INTO refund VALUES (?, ?)", [call.order, call.cents])
    return f"refunded {call.cents} cents"


async def look_up(order: int) -> str:
    """Ask the shop about an order."""
    return f"order {order}: a lamp, 4900 cents"
