-- A number that changes when another connection has committed. Locks nothing, reads nothing.
PRAGMA data_version;
