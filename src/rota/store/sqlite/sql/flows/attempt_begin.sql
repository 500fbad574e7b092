-- From here on all can be taken back.
SAVEPOINT rota_attempt;
