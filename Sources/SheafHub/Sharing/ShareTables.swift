import SheafHubStore

/// The tables of shares. Every key begins with the zone, but for the one that finds a zone by a link.
enum ShareTables {
  static let statements: [StaticString] = [
    """
    CREATE TABLE IF NOT EXISTS links (
      hash BYTEA NOT NULL PRIMARY KEY,
      zone TEXT NOT NULL)
    """,
    """
    CREATE TABLE IF NOT EXISTS shares (
      zone TEXT NOT NULL,
      share BYTEA NOT NULL,
      item BYTEA NOT NULL,
      kind TEXT NOT NULL,
      token TEXT NOT NULL,
      title TEXT NOT NULL,
      active BIGINT NOT NULL,
      anyone TEXT NOT NULL,
      permission TEXT NOT NULL,
      invites BIGINT NOT NULL,
      requests BIGINT NOT NULL,
      revision BIGINT NOT NULL,
      PRIMARY KEY (zone, share))
    """,
    "CREATE UNIQUE INDEX IF NOT EXISTS shares_by_item ON shares (zone, item)",
    """
    CREATE TABLE IF NOT EXISTS link_ends (
      zone TEXT NOT NULL,
      share BYTEA NOT NULL,
      time BIGINT NOT NULL,
      PRIMARY KEY (zone, share))
    """,
    """
    CREATE TABLE IF NOT EXISTS participants (
      zone TEXT NOT NULL,
      share BYTEA NOT NULL,
      account TEXT NOT NULL,
      handle TEXT NOT NULL,
      name TEXT,
      role TEXT NOT NULL,
      permission TEXT NOT NULL,
      acceptance TEXT NOT NULL,
      since BIGINT NOT NULL,
      PRIMARY KEY (zone, share, account))
    """,
    """
    CREATE TABLE IF NOT EXISTS requests (
      zone TEXT NOT NULL,
      share BYTEA NOT NULL,
      account TEXT NOT NULL,
      handle TEXT NOT NULL,
      name TEXT NOT NULL,
      time BIGINT NOT NULL,
      state TEXT NOT NULL,
      PRIMARY KEY (zone, share, account))
    """,
    """
    CREATE TABLE IF NOT EXISTS invitations (
      zone TEXT NOT NULL,
      share BYTEA NOT NULL,
      hash BYTEA NOT NULL,
      permission TEXT NOT NULL,
      inviter TEXT NOT NULL,
      expires BIGINT NOT NULL,
      PRIMARY KEY (zone, share, hash))
    """,
    """
    CREATE TABLE IF NOT EXISTS outgoing (
      zone TEXT NOT NULL,
      account TEXT NOT NULL,
      share BYTEA NOT NULL,
      revision BIGINT NOT NULL,
      acceptance TEXT NOT NULL,
      entry TEXT NOT NULL,
      PRIMARY KEY (zone, account, share))
    """,
    """
    CREATE TABLE IF NOT EXISTS inbox (
      zone TEXT NOT NULL,
      share BYTEA NOT NULL,
      owner TEXT NOT NULL,
      revision BIGINT NOT NULL,
      acceptance TEXT NOT NULL,
      entry TEXT NOT NULL,
      changed BIGINT NOT NULL,
      PRIMARY KEY (zone, share))
    """,
    """
    CREATE TABLE IF NOT EXISTS inboxes (
      zone TEXT NOT NULL PRIMARY KEY,
      number BIGINT NOT NULL)
    """,
    """
    CREATE TABLE IF NOT EXISTS shared_feeds (
      zone TEXT NOT NULL,
      share BYTEA NOT NULL,
      number BIGINT NOT NULL,
      since BIGINT NOT NULL,
      opened BIGINT NOT NULL,
      horizon BIGINT NOT NULL,
      events BIGINT NOT NULL,
      PRIMARY KEY (zone, share))
    """,
    """
    CREATE TABLE IF NOT EXISTS shared_rows (
      zone TEXT NOT NULL,
      share BYTEA NOT NULL,
      item BYTEA NOT NULL,
      number BIGINT NOT NULL,
      device TEXT NOT NULL,
      others BIGINT NOT NULL,
      PRIMARY KEY (zone, share, item))
    """,
    "CREATE UNIQUE INDEX IF NOT EXISTS shared_rows_by_number ON shared_rows (zone, share, number)",
    "CREATE INDEX IF NOT EXISTS shared_rows_by_item ON shared_rows (zone, item)",
    """
    CREATE TABLE IF NOT EXISTS entries (
      zone TEXT NOT NULL,
      item BYTEA NOT NULL,
      share BYTEA NOT NULL,
      number BIGINT NOT NULL,
      told BIGINT NOT NULL,
      PRIMARY KEY (zone, item))
    """,
    """
    CREATE TABLE IF NOT EXISTS version_changes (
      zone TEXT NOT NULL,
      item BYTEA NOT NULL,
      number BIGINT NOT NULL,
      change BIGINT NOT NULL,
      PRIMARY KEY (zone, item, number))
    """,
    """
    CREATE TABLE IF NOT EXISTS memberships (
      zone TEXT NOT NULL,
      share BYTEA NOT NULL,
      account TEXT NOT NULL,
      number BIGINT NOT NULL,
      events BIGINT NOT NULL,
      ended BIGINT,
      PRIMARY KEY (zone, share, account))
    """,
    """
    CREATE TABLE IF NOT EXISTS shared_events (
      zone TEXT NOT NULL,
      share BYTEA NOT NULL,
      number BIGINT NOT NULL,
      about TEXT,
      event TEXT NOT NULL,
      PRIMARY KEY (zone, share, number))
    """,
    """
    CREATE TABLE IF NOT EXISTS uploads (
      zone TEXT NOT NULL,
      share BYTEA NOT NULL,
      account TEXT NOT NULL,
      hash BYTEA NOT NULL,
      lease BIGINT NOT NULL,
      PRIMARY KEY (zone, share, account, hash))
    """,
    """
    CREATE TABLE IF NOT EXISTS shared_verdicts (
      zone TEXT NOT NULL,
      share BYTEA NOT NULL,
      account TEXT NOT NULL,
      device TEXT NOT NULL,
      serial BIGINT NOT NULL,
      verdict TEXT NOT NULL,
      PRIMARY KEY (zone, share, account, device, serial))
    """,
    """
    CREATE TABLE IF NOT EXISTS shared_watermarks (
      zone TEXT NOT NULL,
      share BYTEA NOT NULL,
      account TEXT NOT NULL,
      device TEXT NOT NULL,
      confirmed BIGINT NOT NULL,
      PRIMARY KEY (zone, share, account, device))
    """,
    """
    CREATE TABLE IF NOT EXISTS feed_marks (
      zone TEXT NOT NULL,
      share BYTEA NOT NULL,
      time BIGINT NOT NULL,
      number BIGINT NOT NULL,
      PRIMARY KEY (zone, share, time))
    """,
    """
    CREATE TABLE IF NOT EXISTS shared_changes (
      zone TEXT NOT NULL,
      share BYTEA NOT NULL,
      number BIGINT NOT NULL,
      id BYTEA NOT NULL,
      PRIMARY KEY (zone, share, number))
    """,
  ]
}
