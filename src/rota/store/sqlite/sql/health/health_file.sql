-- The library's version, the file's pages, and whether there are other tables than Rota's in it.
-- Locks nothing.
SELECT sqlite_version(), page_size, page_count, freelist_count, EXISTS (
    SELECT 1 FROM sqlite_master
    WHERE type = 'table' AND name NOT LIKE 'rota\_%' ESCAPE '\'
      AND name NOT LIKE 'sqlite\_%' ESCAPE '\')
FROM pragma_page_size, pragma_page_count, pragma_freelist_count;
