import SheafHubStore

/// The tables of zones. Every key begins with the zone.
enum ZoneTables {
  static let statements: [StaticString] = [
    """
    CREATE TABLE IF NOT EXISTS zones (
      zone TEXT NOT NULL PRIMARY KEY,
      added BIGINT NOT NULL,
      quota BIGINT,
      used BIGINT NOT NULL,
      number BIGINT NOT NULL,
      horizon BIGINT NOT NULL,
      events BIGINT NOT NULL,
      epoch BYTEA NOT NULL)
    """,
    """
    CREATE TABLE IF NOT EXISTS items (
      zone TEXT NOT NULL,
      item BYTEA NOT NULL,
      number BIGINT NOT NULL,
      device TEXT NOT NULL,
      others BIGINT NOT NULL,
      kind TEXT NOT NULL,
      deleted BIGINT,
      places TEXT NOT NULL,
      mode BIGINT NOT NULL,
      mtime BIGINT NOT NULL,
      target BYTEA,
      attributes TEXT NOT NULL,
      version BYTEA,
      versions BIGINT NOT NULL,
      copy_of BYTEA,
      PRIMARY KEY (zone, item))
    """,
    "CREATE UNIQUE INDEX IF NOT EXISTS items_by_number ON items (zone, number)",
    """
    CREATE TABLE IF NOT EXISTS names (
      zone TEXT NOT NULL,
      parent BYTEA NOT NULL,
      name BYTEA NOT NULL,
      item BYTEA NOT NULL,
      PRIMARY KEY (zone, parent, name))
    """,
    """
    CREATE TABLE IF NOT EXISTS linked_items (
      zone TEXT NOT NULL,
      item BYTEA NOT NULL,
      PRIMARY KEY (zone, item))
    """,
    """
    CREATE TABLE IF NOT EXISTS aliases (
      zone TEXT NOT NULL,
      alias BYTEA NOT NULL,
      item BYTEA NOT NULL,
      PRIMARY KEY (zone, alias))
    """,
    """
    CREATE TABLE IF NOT EXISTS versions (
      zone TEXT NOT NULL,
      version BYTEA NOT NULL,
      item BYTEA NOT NULL,
      number BIGINT NOT NULL,
      base BYTEA,
      cause TEXT NOT NULL,
      time BIGINT NOT NULL,
      arrived BIGINT NOT NULL,
      size BIGINT NOT NULL,
      digest BYTEA NOT NULL,
      manifest BYTEA NOT NULL,
      device TEXT NOT NULL,
      PRIMARY KEY (zone, version))
    """,
    "CREATE UNIQUE INDEX IF NOT EXISTS versions_by_item ON versions (zone, item, number)",
    """
    CREATE TABLE IF NOT EXISTS authors (
      zone TEXT NOT NULL,
      version BYTEA NOT NULL,
      handle TEXT NOT NULL,
      PRIMARY KEY (zone, version))
    """,
    """
    CREATE TABLE IF NOT EXISTS placements (
      zone TEXT NOT NULL,
      item BYTEA NOT NULL,
      made_by TEXT,
      made BIGINT NOT NULL,
      placed_by TEXT,
      time BIGINT,
      placed BIGINT NOT NULL,
      PRIMARY KEY (zone, item))
    """,
    """
    CREATE TABLE IF NOT EXISTS purges (
      zone TEXT NOT NULL,
      item BYTEA NOT NULL,
      versions BIGINT NOT NULL,
      PRIMARY KEY (zone, item))
    """,
    """
    CREATE TABLE IF NOT EXISTS labels (
      zone TEXT NOT NULL,
      item BYTEA NOT NULL,
      version BYTEA NOT NULL,
      label TEXT,
      changes BIGINT NOT NULL,
      PRIMARY KEY (zone, item, version))
    """,
    """
    CREATE TABLE IF NOT EXISTS labelled (
      zone TEXT NOT NULL,
      item BYTEA NOT NULL,
      changes BIGINT NOT NULL,
      PRIMARY KEY (zone, item))
    """,
    """
    CREATE TABLE IF NOT EXISTS retentions (
      zone TEXT NOT NULL,
      item BYTEA NOT NULL,
      deleted BIGINT,
      versions BIGINT,
      PRIMARY KEY (zone, item))
    """,
    """
    CREATE TABLE IF NOT EXISTS verdicts (
      zone TEXT NOT NULL,
      device TEXT NOT NULL,
      serial BIGINT NOT NULL,
      verdict TEXT NOT NULL,
      PRIMARY KEY (zone, device, serial))
    """,
    """
    CREATE TABLE IF NOT EXISTS watermarks (
      zone TEXT NOT NULL,
      device TEXT NOT NULL,
      confirmed BIGINT NOT NULL,
      PRIMARY KEY (zone, device))
    """,
    """
    CREATE TABLE IF NOT EXISTS events (
      zone TEXT NOT NULL,
      sequence BIGINT NOT NULL,
      event TEXT NOT NULL,
      PRIMARY KEY (zone, sequence))
    """,
    """
    CREATE TABLE IF NOT EXISTS comments (
      zone TEXT NOT NULL,
      comment BYTEA NOT NULL,
      PRIMARY KEY (zone, comment))
    """,
    """
    CREATE TABLE IF NOT EXISTS read_marks (
      zone TEXT NOT NULL,
      log BYTEA NOT NULL,
      number BIGINT NOT NULL,
      PRIMARY KEY (zone, log))
    """,
    """
    CREATE TABLE IF NOT EXISTS epochs (
      zone TEXT NOT NULL,
      epoch BYTEA NOT NULL,
      share BYTEA NOT NULL,
      events BIGINT NOT NULL,
      PRIMARY KEY (zone, epoch, share))
    """,
    """
    CREATE TABLE IF NOT EXISTS chunks (
      zone TEXT NOT NULL,
      hash BYTEA NOT NULL,
      length BIGINT NOT NULL,
      uses BIGINT NOT NULL,
      lease BIGINT NOT NULL,
      PRIMARY KEY (zone, hash))
    """,
    """
    CREATE TABLE IF NOT EXISTS chunk_bytes (
      zone TEXT NOT NULL,
      hash BYTEA NOT NULL,
      bytes BYTEA NOT NULL,
      PRIMARY KEY (zone, hash))
    """,
    """
    CREATE TABLE IF NOT EXISTS changes (
      zone TEXT NOT NULL,
      number BIGINT NOT NULL,
      id BYTEA NOT NULL,
      PRIMARY KEY (zone, number))
    """,
  ]
}
