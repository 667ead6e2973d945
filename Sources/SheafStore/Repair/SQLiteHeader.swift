internal import Glibc

/// What the header of a SQLite file says (SQLite file format, 1.3).
struct SQLiteHeader {
  /// Bytes of a page.
  let pageSize: Int
  /// Those of them that SQLite uses.
  let usable: Int
  let pageCount: Int64
  /// Whether SQLite goes by the number of pages, and not by the length of the file (1.3.7).
  let isCounted: Bool
  let userVersion: Int64
  /// Whether pages tell which of them belong together (1.3.12).
  let hasPointerMap: Bool

  /// - Parameter file: A descriptor of the file.
  /// - Returns: nil where the header cannot be read, or has no size of pages.
  init?(_ file: CInt) {
    var header = [UInt8](repeating: 0, count: 100)
    guard pread(file, &header, header.count, 0) == header.count else { return nil }
    let size = Int(Self.number(header, 16, 2))
    pageSize = size == 1 ? 65_536 : size
    guard pageSize >= 512, pageSize.nonzeroBitCount == 1 else { return nil }
    usable = pageSize - Int(header[20])
    pageCount = Self.number(header, 28, 4)
    isCounted = pageCount > 0 && header[24..<28].elementsEqual(header[92..<96])
    userVersion = Self.number(header, 60, 4)
    hasPointerMap = Self.number(header, 52, 4) != 0
  }

  /// A number of some bytes, as SQLite writes it.
  static func number(_ bytes: [UInt8], _ place: Int, _ count: Int) -> Int64 {
    bytes[place..<(place + count)].reduce(0) { $0 << 8 | Int64($1) }
  }
}
