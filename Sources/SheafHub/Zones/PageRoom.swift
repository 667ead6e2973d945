import SheafWire

/// What a page of an answer may have: so many rows, and about a mebibyte, so that what is in the rows does not decide
/// how much memory a reader takes.
struct PageRoom {
  /// Bytes after which a page ends. It has at least one row.
  static let bytes = 1 << 20
  /// Rows that are read from the store at once; a row has up to half a mebibyte.
  private static let step = 16

  private let limit: Int
  private var rows = 0
  private var bytes = 0

  init(_ limit: Int) { self.limit = limit }

  /// How many rows to read next. The last page of a feed ends with fewer.
  var next: Int { min(Self.step, limit + 1 - rows) }

  /// Takes a row of so many bytes; says whether it still belongs to the page.
  mutating func take(_ count: Int) -> Bool {
    guard rows < limit, rows == 0 || bytes + count <= Self.bytes else { return false }
    rows += 1
    bytes += count
    return true
  }
}

extension ItemState {
  /// About the bytes that it has in JSON.
  var wireBytes: Int {
    // Escaped, a byte of a name has up to six; the others are Base64 at most.
    let names = places.reduce(0) { $0 + 80 + $1.name.reduce(0) { $0 + ($1 < 0x20 ? 6 : 2) } }
    let values = attributes.reduce(0) { $0 + $1.key.utf8.count * 2 + $1.value.count * 4 / 3 + 8 }
    return 600 + names + values + (target?.count ?? 0) * 4 / 3
  }
}
