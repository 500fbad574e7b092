"""An issue becomes a job per subscriber; jobs are sent by the hundred, and each ends on its own."""

from collections.abc import Iterator

from rota import PROVIDED, Context, Discard, FinishedJob, Retry, Rota

from .provider import Answer, Mail, Provider

rota = Rota()


@rota.lifespan
def provider() -> Iterator[Provider]:
    """Opened once for a worker; a real one would hold an HTTP client."""
    provider = Provider()
    yield provider
    print(f"the provider sent {len(set(provider.sent))} mails in {provider.calls} calls")


@rota.task(queue="mail")
def unsubscribe(job: FinishedJob) -> None:
    """Forget a subscriber whose mail was discarded."""
    with rota.transaction() as tx:
        tx.execute("DELETE FROM subscriber WHERE address = ?", [job.args["mails"]["to"]])


@rota.task(queue="mail", batch=100, within=0.2, on_failure=unsubscribe)
async def deliver(mails: list[Mail], provider: Provider = PROVIDED) -> list[Discard | Retry | None]:
    """Send up to a hundred mails with one call. One that fails costs the others nothing."""
    return [outcome(answer) for answer in await provider.send(mails)]


def outcome(answer: Answer) -> Discard | Retry | None:
    """What an answer means for its job."""
    match answer:
        case "sent":
            return None
        case "busy":
            return Retry("the mailbox is busy", after=0.1)
        case "no such mailbox":
            return Discard(answer)


@rota.task(queue="mail")
def publish(ctx: Context, subject: str) -> None:
    """Enqueue a mail for each subscriber, all of them in the transaction that completes this job."""
    with ctx.transaction() as tx:
        addresses = tx.execute("SELECT address FROM subscriber ORDER BY address").fetchall()
        deliver.enqueue_many(((Mail(address, subject),) for (address,) in addresses), conn=tx)
