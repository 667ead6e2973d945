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

  /// The room for contents.
  ///
  /// - Parameter bytes: Of how many it is to be known whether they have room; a request of sends is always among them.
  func room(for bytes: Int64) -> RoomLeft

  /// The columns of a table as it is in the store; none of one that is not there.
  mutating func columns(of table: String) throws -> Set<String>
}

/// How many bytes of contents a store takes. Where it takes none, what is left is for changes that need little, such as
/// deletions and what destroys contents.
package struct RoomLeft: Sendable {
  /// For versions, and chunks that come with them; 0 or less where there is none.
  package let versions: Int64
  /// For chunks that come before their versions. It is less, so that a version has room once its chunks are there.
  package let uploads: Int64

  static let unknown = RoomLeft(versions: .max, uploads: .max)
}

extension SQLConnection {
  /// For an engine whose disk is not this machine's.
  package func room(for bytes: Int64) -> RoomLeft { .unknown }

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
