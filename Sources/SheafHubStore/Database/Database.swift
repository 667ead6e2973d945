/// A store of rows that a hub keeps everything in: SQLite in one file, or an engine that speaks PostgreSQL's protocol.
///
/// One set of SQL serves all engines; docs/SCALE.md lists the forms that it uses. Placeholders are `$1` to `$n`,
/// numbered by first appearance.
package protocol Database: Sendable {
  /// Runs `body` as one transaction, which is durable when this returns.
  ///
  /// The engine may refuse a transaction that met another one, or lose its connection before the commit. Then `body`
  /// runs again, so it must change nothing but rows.
  ///
  /// - Throws: The error of `body`, and then nothing is changed; ``HubStoreError``. After `unavailable` the transaction
  ///   may be done nevertheless, if the connection broke while it was committed.
  func write<T: Sendable>(_ body: @escaping @Sendable (inout any SQLConnection) throws -> T) async throws -> T

  /// Runs `body` on one snapshot of the rows. It must not change any.
  func read<T: Sendable>(_ body: @escaping @Sendable (inout any SQLConnection) throws -> T) async throws -> T

  /// Empties the store's own log, which may hold what was destroyed, as far as no reader needs it now.
  func emptyLog() async

  /// Lets the running transactions end, refuses those that wait, and closes.
  func close() async
}

extension Database {
  /// For an engine whose log is not in the hub's folder.
  package func emptyLog() async {}
}

/// One transaction's view of the store. Only the body that got it uses it, and only until it returns.
package protocol SQLConnection {
  mutating func query(_ sql: StaticString, _ values: [SQLValue]) throws -> [SQLRow]

  /// Runs a statement without a result.
  ///
  /// - Returns: how many rows it changed.
  @discardableResult mutating func execute(_ sql: StaticString, _ values: [SQLValue]) throws -> Int

  /// Runs a statement that a ``StoredTable`` has made.
  @discardableResult mutating func query(_ statement: TableStatement, _ values: [SQLValue]) throws -> [SQLRow]

  /// Whether there is room for more contents. Where there is none, what is left is for changes that need little, such as
  /// deletions and what destroys contents.
  var hasRoom: Bool { get }

  /// The columns of a table as it is in the store; none of one that is not there.
  mutating func columns(of table: String) throws -> Set<String>
}

extension SQLConnection {
  /// For an engine whose disk is not this machine's.
  package var hasRoom: Bool { true }

  package mutating func query(_ sql: StaticString) throws -> [SQLRow] { try query(sql, []) }

  @discardableResult package mutating func execute(_ sql: StaticString) throws -> Int { try execute(sql, []) }
}

/// Why the store did not do what it was asked.
package enum HubStoreError: Error, Equatable {
  /// The store cannot be reached or cannot write now. Trying again later helps.
  case unavailable(String)
  /// The disk has no room for what was to be written. Nothing of it is.
  case full(String)
  /// A row is not what the hub's own statements write.
  case corrupt(String)
  /// A text has a NUL, which PostgreSQL cannot store.
  case nulInText
  /// The engine refused a statement, which is a mistake in the statement.
  case refused(String)
}
