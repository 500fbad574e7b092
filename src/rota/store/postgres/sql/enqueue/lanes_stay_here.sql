-- Remember, for the rest of this transaction, that it has made lanes itself.
SELECT set_config('rota.lanes_here', 'yes', true)
