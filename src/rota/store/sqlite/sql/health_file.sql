-- The library's version and the file's pages. Locks nothing.
SELECT sqlite_version(), page_size, page_count, freelist_count
FROM pragma_page_size, pragma_page_count, pragma_freelist_count;
