-- In which schemas this connection looks for a table, in their order; they need not be there. It
-- locks nothing.
SELECT string_to_array(replace(current_setting('search_path'), '"$user"', current_user), ', ')
