-- Whether the tables came from another cluster, and no worker has anchored them yet.
SELECT sure FROM rota.restored
