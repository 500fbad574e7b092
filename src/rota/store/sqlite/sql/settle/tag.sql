-- Tag the open transaction in which a handler's job will be completed: with it the savepoint ends.
SAVEPOINT rota_tag;
