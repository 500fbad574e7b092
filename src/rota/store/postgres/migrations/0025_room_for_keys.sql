-- Room for a second version of each row on every page of the unique keys.
-- Expands: older code writes the same rows; those that are there move as they are written anew.

-- With 70 a page had room for the second version of less than half of its rows: where many keys are replaced at once, those of the
-- others went to other pages, with a new entry in each index.
ALTER TABLE rota.unique_key SET (fillfactor = 45);
