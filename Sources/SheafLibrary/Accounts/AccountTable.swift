import SheafModel
import SheafStore

/// The accounts of a library, in memory as they are stored: few, and asked for by almost every operation of a command.
///
/// Changed only once the rows are recorded.
struct AccountTable {
  private var rows: [AccountRow]

  init(_ rows: [AccountRow]) { self.rows = rows }

  /// All, first made first; those that were removed and are the authors of something are among them.
  var all: [AccountRow] { rows }

  /// Those of this library that were not removed.
  var present: [AccountRow] { rows.filter { $0.removed == nil && $0.elsewhere == nil } }

  subscript(id: Int64) -> AccountRow? { rows.first { $0.id == id } }

  /// The account of a key, which may be removed.
  func named(_ key: AccountHandle) -> AccountRow? { rows.first { $0.key == key } }

  /// The accounts that people know by a handle with these bytes; removed ones are among them, and people elsewhere.
  func called(_ handle: [UInt8]) -> [AccountRow] { rows.filter { Array($0.handle.description.utf8) == handle } }

  /// The account of a key, unless it was removed.
  func present(_ key: AccountHandle) -> AccountRow? { rows.first { $0.key == key && $0.removed == nil } }

  /// A person whom a hub knows.
  func person(_ handle: AccountHandle, at hub: String) -> AccountRow? {
    rows.first { row in
      row.elsewhere.map { $0.hub == hub && $0.handle == handle && $0.person == nil } ?? false
    }
  }

  /// The id of an account that is yet to be made.
  var nextID: Int64 { (rows.map(\.id).max() ?? 0) + 1 }

  mutating func insert(_ row: AccountRow) { rows.append(row) }

  /// Puts a row in the place of the one of its id.
  mutating func replace(_ row: AccountRow) {
    if let index = rows.firstIndex(where: { $0.id == row.id }) { rows[index] = row }
  }

  mutating func remove(_ id: Int64) { rows.removeAll { $0.id == id } }
}
