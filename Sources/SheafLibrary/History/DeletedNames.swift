import SheafModel
import SheafStore

/// The names that `.versions/` and `.deleted/` give to items that were deleted from a folder under one name.
///
/// Rules:
/// 1. The item that was deleted last has the name itself, unless something in the folder has it by now: `.versions/`
///    shows that too, and `.deleted/` does not.
/// 2. Of the others, the last one of each second is called `NAME~deleted~TIME`.
/// 3. If that is in use or too long, the number of its inode follows, `~INODE`; if that is in use too, ` (2)`, ` (3)`
///    and so on. In a name that is too long, NAME loses its end.
///
/// So a name tells where its row is found (``Origin``), and a look-up reads the rows of one name only.
struct DeletedNames {
  private static let mark = Array("~deleted~".utf8)
  private static let timeLength = 20
  private static let limit = 255

  private let name: [UInt8]
  private let rows: [DeletedRow]
  private let isInUse: Bool

  /// - Parameters:
  ///   - rows: the documents that were deleted under `name`, latest first.
  ///   - isInUse: whether something in the folder has the name by now.
  init(_ name: [UInt8], _ rows: [DeletedRow], isInUse: Bool) {
    self.name = name
    self.rows = rows
    self.isInUse = isInUse
  }

  /// Where the document is found that is shown under a name of rule 2 or 3.
  enum Origin: Equatable {
    /// Among those that were deleted under this name in this second.
    case name([UInt8], second: Int64)
    case inode(Int64)
  }

  /// The document that a name of rule 2 or 3 means; nil for any other name.
  static func origin(of shown: [UInt8]) -> Origin? {
    guard let start = shown.indices.last(where: { shown[$0...].starts(with: mark) }) else { return nil }
    let rest = shown[(start + mark.count)...]
    guard let second = Timestamp(nameText: String(decoding: rest.prefix(timeLength), as: UTF8.self))?.seconds else {
      return nil
    }
    let behind = rest.dropFirst(timeLength)
    if behind.isEmpty { return .name(Array(shown[..<start]), second: second) }
    guard behind.first == UInt8(ascii: "~") else { return nil }
    let number = behind.dropFirst().prefix { $0 != UInt8(ascii: " ") }
    return Int64(String(decoding: number, as: UTF8.self)).map { .inode($0) }
  }

  /// The document that is shown under a name of rule 2 or 3.
  ///
  /// - Parameters:
  ///   - origin: the document that the name means.
  ///   - isTaken: whether a name is that of something in the folder, or of a document deleted from it.
  func row(called shown: [UInt8], _ origin: Origin, _ isTaken: ([UInt8]) throws -> Bool) rethrows -> DeletedRow? {
    let index =
      switch origin {
      case .name(_, let second): rows.indices.first { !hasOwnName($0) && rows[$0].time.seconds == second }
      case .inode(let ino): rows.firstIndex { $0.ino == ino }
      }
    guard let index, try shownName(at: index, isTaken) == shown else { return nil }
    return rows[index]
  }

  /// The name that a document is shown under.
  ///
  /// - Parameters:
  ///   - index: its place among the rows.
  ///   - isTaken: as of ``row(called:_:_:)``.
  func shownName(at index: Int, _ isTaken: ([UInt8]) throws -> Bool) rethrows -> [UInt8] {
    if hasOwnName(index) { return name }
    let row = rows[index]
    let time = Self.mark + Array(row.time.nameText.utf8)
    let isLastOfSecond = index == 0 || hasOwnName(index - 1) || rows[index - 1].time.seconds != row.time.seconds
    let short = name + time
    if isLastOfSecond, short.count <= Self.limit, try !isTaken(short) { return short }
    var number = 1
    while true {
      let ending = time + Array("~\(row.ino)\(number > 1 ? " (\(number))" : "")".utf8)
      let shown = Array(name.prefix(Self.limit - ending.count)) + ending
      if try !isTaken(shown) { return shown }
      number += 1
    }
  }

  /// Whether rule 1 is for a document.
  private func hasOwnName(_ index: Int) -> Bool { index == 0 && !isInUse }
}

extension Library {
  private static let ever = Timestamp(nanoseconds: .min)

  /// The items that were deleted from a folder and that `caller` sees, each with a name of its own, latest first. They
  /// are read without the lock, so a caller that shows one checks whether it is still deleted.
  ///
  /// - Parameter used: names that deleted items cannot have.
  func deletedNames(
    _ kind: DeletedKind, from folder: Int64, _ used: Set<[UInt8]>, _ caller: Caller
  ) throws -> [(row: DeletedRow, name: [UInt8])] {
    let since = try locked {
      try allow(.readHistory, inode(folder), caller)
      return try visibleDeletions(from: folder, caller) ?? Self.ever
    }
    let rows = try store.snapshot { try $0.deleted(kind, from: folder, since: since) }
    let names = Dictionary(grouping: rows, by: \.name).reduce(into: [[UInt8]: DeletedNames]()) { names, group in
      names[group.key] = DeletedNames(group.key, group.value, isInUse: used.contains(group.key))
    }
    var places: [[UInt8]: Int] = [:]
    return rows.compactMap { row in
      let place = places[row.name, default: 0]
      places[row.name] = place + 1
      let name = names[row.name]?.shownName(at: place) { used.contains($0) || names[$0] != nil }
      return name.map { (row, $0) }
    }
  }

  /// The item that was deleted from a folder and is shown under `name`; nil if there is none.
  ///
  /// - Parameter isUsed: whether a deleted item cannot have a name; the caller has checked `name` itself.
  func deleted(
    _ kind: DeletedKind, shownAs name: [UInt8], in folder: Int64, _ caller: Caller, _ isUsed: ([UInt8]) throws -> Bool
  ) throws -> DeletedRow? {
    let since = try visibleDeletions(from: folder, caller) ?? Self.ever
    if let last = try read({ try $0.deleted(kind, from: folder, name: name, since: since) }).first { return last }
    guard let origin = DeletedNames.origin(of: name) else { return nil }
    var former: [UInt8]
    switch origin {
    case .name(let name, _): former = name
    case .inode(let ino):
      guard let row = try read({ try $0.deleted(ino) }), row.parent == folder else { return nil }
      former = row.name
    }
    let rows = try read { try $0.deleted(kind, from: folder, name: former, since: since) }
    return try DeletedNames(former, rows, isInUse: isUsed(former)).row(called: name, origin) { name in
      try isUsed(name) || read { try $0.hasDeleted(kind, from: folder, name: name, since: since) }
    }
  }
}
