import GRDBSQLite
import Glibc
import SheafModel

@testable import SheafLibrary
@testable import SheafStore

/// What SQLite does for the calling thread: it costs a library's lock as much as everything else together, and is the
/// same on any machine.
struct StoreWork {
  /// Rows that it gave.
  private(set) var rows = 0
  /// Bytes of these rows.
  private(set) var bytes = 0
  /// Steps of its virtual machine, one for each row that it looks at, and more.
  private(set) var steps = 0

  private let thread = pthread_self()

  private init() {}

  /// The least work for `body` of several times, until it `suffices`, for 30 seconds at most: what the library's own
  /// threads have waiting is done by whoever reads next, and they have some for as long as they settle what was done.
  static func least(
    of library: Library, until suffices: (StoreWork) -> Bool, _ body: () throws -> Void
  ) throws -> StoreWork {
    let deadline = ContinuousClock.now + .seconds(30)
    var least = try of(library, body)
    while !suffices(least), ContinuousClock.now < deadline {
      let work = try of(library, body)
      if work.steps < least.steps { least = work }
    }
    return least
  }

  /// The work for `body`, after all that was to be done before.
  static func of(_ library: Library, _ body: () throws -> Void) throws -> StoreWork {
    let work = UnsafeMutablePointer<StoreWork>.allocate(capacity: 1)
    work.initialize(to: StoreWork())
    defer { work.deallocate() }
    let handle = try library.store.read { transaction in
      // A query has everything run that waits.
      _ = try transaction.setting("library")
      let handle = transaction.connection.handle
      sqlite3_trace_v2(
        handle, UInt32(SQLITE_TRACE_ROW),
        { _, work, statement, _ in
          StoreWork.note(work) { $0.noteRow(of: OpaquePointer(statement)) }
          return 0
        }, work)
      sqlite3_progress_handler(
        handle, 1,
        { work in
          StoreWork.note(work) { $0.steps += 1 }
          return 0
        }, work)
      return handle
    }
    let result = Result { try body() }
    try library.store.read { transaction in
      _ = try transaction.setting("library")
      sqlite3_trace_v2(handle, 0, nil, nil)
      sqlite3_progress_handler(handle, 0, nil, nil)
    }
    try result.get()
    return work.pointee
  }

  private static func note(_ work: UnsafeMutableRawPointer?, _ change: (inout StoreWork) -> Void) {
    guard let work = work?.assumingMemoryBound(to: StoreWork.self),
      pthread_equal(work.pointee.thread, pthread_self()) != 0
    else { return }
    change(&work.pointee)
  }

  private mutating func noteRow(of statement: OpaquePointer?) {
    rows += 1
    for column in 0..<sqlite3_data_count(statement)
    where [SQLITE_BLOB, SQLITE_TEXT].contains(sqlite3_column_type(statement, column)) {
      bytes += Int(sqlite3_column_bytes(statement, column))
    }
  }
}
