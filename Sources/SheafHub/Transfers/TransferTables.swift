import SheafHubStore

/// The tables of items that go from one account to another. Every key begins with the zone.
enum TransferTables {
  static let statements: [StaticString] = [
    // What the zone's account offers to others.
    """
    CREATE TABLE IF NOT EXISTS transfers (
      zone TEXT NOT NULL,
      item BYTEA NOT NULL,
      transfer BYTEA NOT NULL,
      account TEXT NOT NULL,
      handle TEXT NOT NULL,
      state TEXT NOT NULL,
      time BIGINT NOT NULL,
      attempt BIGINT NOT NULL,
      PRIMARY KEY (zone, item))
    """,
    // What others offer to it: where that is. The other zone has the rest.
    """
    CREATE TABLE IF NOT EXISTS transfer_offers (
      zone TEXT NOT NULL,
      transfer BYTEA NOT NULL,
      giver TEXT NOT NULL,
      item BYTEA NOT NULL,
      state TEXT NOT NULL,
      time BIGINT NOT NULL,
      attempt BIGINT NOT NULL,
      PRIMARY KEY (zone, transfer))
    """,
    // Items that arrive by an offer, until all of them are there. Their versions are in `versions` already.
    """
    CREATE TABLE IF NOT EXISTS arrivals (
      zone TEXT NOT NULL,
      transfer BYTEA NOT NULL,
      item BYTEA NOT NULL,
      copied BIGINT NOT NULL,
      place BIGINT NOT NULL,
      entry TEXT NOT NULL,
      PRIMARY KEY (zone, transfer, item))
    """,
    "CREATE INDEX IF NOT EXISTS arrivals_by_place ON arrivals (zone, transfer, place)",
  ]
}
