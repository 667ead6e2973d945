// Functions that Swift cannot call, since their number of arguments varies.

int sqlite3_config(int option, ...);

/// Has SQLite not count the memory that it takes, which costs a lock for each piece (SQLITE_CONFIG_MEMSTATUS, which is
/// 9). Returns SQLITE_MISUSE where it has begun to work already.
static inline int csqlite_spare_memory_counts(void) { return sqlite3_config(9, 0); }
