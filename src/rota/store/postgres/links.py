"""Links of chains, decided in the transaction that ends their job: one commit instead of four.

To look before the commit is right where nobody else can arrive at the node, and where what waits
for it waits for nothing else: then this transaction sees all there is to see. Whatever it leaves
out is decided after the commit, as everywhere.
"""

from collections.abc import Sequence

from rota.model.headers import NodeId
from rota.store.operation import Query, Rows, Steps
from rota.store.postgres.settle_write import array
from rota.store.postgres.statements import sql

LINKS = sql("flows/links")

MOST = 100
"""Nodes that are released in another one's settlement."""


def links(nodes: Sequence[NodeId]) -> Query:
    """Decide of those that are links, of which the job is completed."""
    return LINKS(nodes=array(nodes), most=MOST)


def decided(rows: Rows) -> list[NodeId]:
    """The nodes of which nothing is left to be decided."""
    # Where something of a flow runs, the flow has not ended.
    return [NodeId(node) for node, _ in rows if node is not None]


def decide_links(nodes: Sequence[NodeId]) -> Steps[list[NodeId]]:
    """The same as one of several steps."""
    return decided((yield links(nodes)))
