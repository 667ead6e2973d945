import SheafHubStore

/// The tables of accounts. Every key begins with the zone, but for the one that finds a zone by its handle.
enum AccountTables {
  static let statements: [StaticString] = [
    """
    CREATE TABLE IF NOT EXISTS handles (
      handle TEXT NOT NULL PRIMARY KEY,
      zone TEXT NOT NULL)
    """,
    """
    CREATE TABLE IF NOT EXISTS accounts (
      zone TEXT NOT NULL PRIMARY KEY,
      handle TEXT NOT NULL,
      name TEXT,
      added BIGINT NOT NULL,
      revision BIGINT NOT NULL)
    """,
    """
    CREATE TABLE IF NOT EXISTS devices (
      zone TEXT NOT NULL,
      device TEXT NOT NULL,
      name TEXT NOT NULL,
      key BYTEA NOT NULL,
      added BIGINT NOT NULL,
      seen BIGINT,
      PRIMARY KEY (zone, device))
    """,
    """
    CREATE TABLE IF NOT EXISTS wipes (
      zone TEXT NOT NULL,
      device TEXT NOT NULL,
      name TEXT NOT NULL,
      key BYTEA NOT NULL,
      added BIGINT NOT NULL,
      seen BIGINT,
      asked BIGINT NOT NULL,
      done BIGINT,
      PRIMARY KEY (zone, device))
    """,
    """
    CREATE TABLE IF NOT EXISTS codes (
      zone TEXT NOT NULL,
      hash BYTEA NOT NULL,
      expires BIGINT NOT NULL,
      device TEXT,
      PRIMARY KEY (zone, hash))
    """,
    """
    CREATE TABLE IF NOT EXISTS sessions (
      zone TEXT NOT NULL,
      hash BYTEA NOT NULL,
      device TEXT NOT NULL,
      expires BIGINT NOT NULL,
      PRIMARY KEY (zone, hash))
    """,
    """
    CREATE TABLE IF NOT EXISTS nonces (
      zone TEXT NOT NULL,
      nonce BYTEA NOT NULL,
      expires BIGINT NOT NULL,
      PRIMARY KEY (zone, nonce))
    """,
    """
    CREATE TABLE IF NOT EXISTS settings (
      name TEXT NOT NULL PRIMARY KEY,
      value TEXT NOT NULL)
    """,
    """
    CREATE TABLE IF NOT EXISTS secrets (
      name TEXT NOT NULL PRIMARY KEY,
      value BYTEA NOT NULL)
    """,
  ]
}
