import SheafHubStore

/// The tables of shares between hubs. Those with keys are of a person whom somebody of another hub invited; those with
/// roots are of an owner who invited somebody of another hub. Every key begins with the zone.
enum FederationTables {
  static let statements: [StaticString] = [
    """
    CREATE TABLE IF NOT EXISTS deposits (
      zone TEXT NOT NULL,
      device TEXT NOT NULL,
      key BYTEA NOT NULL,
      signature BYTEA NOT NULL,
      PRIMARY KEY (zone, device, key))
    """,
    """
    CREATE TABLE IF NOT EXISTS collaborations (
      zone TEXT NOT NULL,
      share BYTEA NOT NULL,
      owner TEXT NOT NULL,
      address TEXT NOT NULL,
      place TEXT NOT NULL,
      leaves BYTEA NOT NULL,
      revision BIGINT NOT NULL,
      told BIGINT NOT NULL,
      PRIMARY KEY (zone, share))
    """,
    """
    CREATE TABLE IF NOT EXISTS collaboration_keys (
      zone TEXT NOT NULL,
      share BYTEA NOT NULL,
      device TEXT NOT NULL,
      key BYTEA NOT NULL,
      PRIMARY KEY (zone, share, device))
    """,
    """
    CREATE TABLE IF NOT EXISTS accepted_abroad (
      zone TEXT NOT NULL,
      share BYTEA NOT NULL,
      PRIMARY KEY (zone, share))
    """,
    """
    CREATE TABLE IF NOT EXISTS outgoing_roots (
      zone TEXT NOT NULL,
      share BYTEA NOT NULL,
      PRIMARY KEY (zone, share))
    """,
    """
    CREATE TABLE IF NOT EXISTS outgoing_abroad (
      zone TEXT NOT NULL,
      share BYTEA NOT NULL,
      account BYTEA NOT NULL,
      revision BIGINT NOT NULL,
      entry TEXT NOT NULL,
      PRIMARY KEY (zone, share, account))
    """,
    """
    CREATE TABLE IF NOT EXISTS guests (
      zone TEXT NOT NULL,
      share BYTEA NOT NULL,
      account TEXT NOT NULL,
      name TEXT,
      root BYTEA NOT NULL,
      size BIGINT NOT NULL,
      revision BIGINT NOT NULL,
      expires BIGINT NOT NULL,
      PRIMARY KEY (zone, share, account))
    """,
    """
    CREATE TABLE IF NOT EXISTS guest_sessions (
      zone TEXT NOT NULL,
      hash BYTEA NOT NULL,
      share BYTEA NOT NULL,
      account TEXT NOT NULL,
      device TEXT NOT NULL,
      root BYTEA NOT NULL,
      expires BIGINT NOT NULL,
      PRIMARY KEY (zone, hash))
    """,
  ]
}
