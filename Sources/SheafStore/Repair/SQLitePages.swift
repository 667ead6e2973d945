internal import Glibc

/// The pages of a damaged SQLite file, read one by one (SQLite file format, 1.5, 1.6 and 2.1). Whatever they hold, this
/// ends.
struct SQLitePages {
  /// A value of a record. No table of a library has floating-point numbers.
  enum Value {
    case null
    case number(Int64)
    case text([UInt8])
    case bytes([UInt8])
  }

  /// What a page of a B-tree is (1.6).
  enum Kind: UInt8 {
    case innerIndex = 0x02
    case innerTable = 0x05
    case leafIndex = 0x0A
    case leafTable = 0x0D
  }

  private let file: CInt
  let header: SQLiteHeader
  /// How many pages the file has.
  let count: Int64
  /// Bytes of a page that SQLite uses.
  var usable: Int { header.usable }

  /// - Parameter file: A descriptor of the file, which stays the caller's.
  /// - Returns: nil where the header cannot be that of a SQLite file.
  init?(_ file: CInt) {
    var status = stat()
    guard let header = SQLiteHeader(file), header.usable >= 480, fstat(file, &status) == 0 else { return nil }
    self.file = file
    self.header = header
    count = Int64(status.st_size) / Int64(header.pageSize)
  }

  /// - Parameter number: From 1 on.
  func page(_ number: Int64) -> [UInt8]? {
    guard number >= 1, number <= count else { return nil }
    var bytes = [UInt8](repeating: 0, count: header.pageSize)
    let offset = off_t(number - 1) * off_t(header.pageSize)
    return pread(file, &bytes, header.pageSize, offset) == header.pageSize ? bytes : nil
  }

  /// Writes over bytes of the file; returns whether that went.
  func write(_ bytes: [UInt8], at offset: Int) -> Bool {
    pwrite(file, bytes, bytes.count, off_t(offset)) == bytes.count
  }

  /// Where the cells of a page are: as many as its header says, or as fit where that cannot be.
  func cells(of page: [UInt8], header: Int, headerLength: Int) -> [Int] {
    let first = header + headerLength
    let fitting = (usable - first) / 2
    let told = Int(SQLiteHeader.number(page, header + 3, 2))
    let places = (0..<(told > 0 && told <= fitting ? told : fitting)).map {
      Int(SQLiteHeader.number(page, first + 2 * $0, 2))
    }
    return places.filter { $0 > first && $0 < usable - 4 }
  }

  /// A number of variable length, and where it ends.
  private static func varint(_ bytes: [UInt8], _ place: Int) -> (value: Int64, end: Int)? {
    var value: UInt64 = 0
    for index in 0..<9 {
      guard place + index < bytes.count else { return nil }
      let byte = bytes[place + index]
      if index == 8 { return (Int64(bitPattern: value << 8 | UInt64(byte)), place + 9) }
      value = value << 7 | UInt64(byte & 0x7F)
      if byte < 0x80 { return (Int64(bitPattern: value), place + index + 1) }
    }
    return nil
  }

  /// The record of a cell, with what is on other pages.
  ///
  /// - Parameters:
  ///   - limit: Bytes.
  ///   - isPassedOver: Whether the row of a number is not wanted.
  /// - Returns: The row's number, where the page is of a table that has such, and the record; nil for what is none, and for
  ///   what is passed over.
  func record(
    at place: Int, of page: [UInt8], _ kind: Kind = .leafTable, atMost limit: Int,
    passingOver isPassedOver: (Int64) -> Bool = { _ in false }
  ) -> (number: Int64, record: [UInt8])? {
    let place = kind == .innerIndex ? place + 4 : place
    guard kind != .innerTable, let (length, afterLength) = Self.varint(page, place), length >= 2, length <= limit else {
      return nil
    }
    var (number, start) = (Int64(0), afterLength)
    if kind == .leafTable {
      guard let (value, end) = Self.varint(page, afterLength) else { return nil }
      (number, start) = (value, end)
      if isPassedOver(number) { return nil }
    }
    let total = Int(length)
    let least = (usable - 12) * 32 / 255 - 23
    let greatest = kind == .leafTable ? usable - 35 : (usable - 12) * 64 / 255 - 23
    let most = least + (total - least) % (usable - 4)
    let local = total <= greatest ? total : most <= greatest ? most : least
    guard local >= 0, start + local <= usable else { return nil }
    var record = Array(page[start..<(start + local)])
    guard local < total else { return (number, record) }
    guard start + local + 4 <= usable else { return nil }
    var next = SQLiteHeader.number(page, start + local, 4)
    // Each page adds some, so this ends.
    while record.count < total {
      guard let more = self.page(next) else { return nil }
      next = SQLiteHeader.number(more, 0, 4)
      record += more[4..<min(usable, 4 + total - record.count)]
    }
    return (number, record)
  }

  /// The values of a record; nil where it is none.
  static func values(of record: [UInt8]) -> [Value]? {
    guard let (headerLength, afterLength) = varint(record, 0), headerLength <= record.count else { return nil }
    var (place, types) = (afterLength, [Int64]())
    while place < headerLength {
      guard let (type, end) = varint(record, place) else { return nil }
      types.append(type)
      place = end
    }
    guard place == headerLength else { return nil }
    var values: [Value] = []
    for type in types {
      let length: Int64 =
        switch type {
        case 0, 8, 9: 0
        case 1...4: type
        case 5, 6: type == 5 ? 6 : 8
        case 12...: (type - 12) / 2
        default: -1
        }
      guard length >= 0, length <= record.count - place else { return nil }
      let bytes = record[place..<(place + Int(length))]
      place += Int(length)
      switch type {
      case 0: values.append(.null)
      case 8, 9: values.append(.number(type - 8))
      case 1...6:
        let sign: Int64 = bytes.first.map { $0 >= 0x80 ? -1 : 0 } ?? 0
        values.append(.number(bytes.reduce(sign) { $0 << 8 | Int64($1) }))
      default: values.append(type % 2 == 1 ? .text(Array(bytes)) : .bytes(Array(bytes)))
      }
    }
    return values
  }
}
