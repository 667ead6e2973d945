internal import Foundation
internal import GRDBSQLite
package import SheafModel

/// Sums for `sheaf status`.
package struct StoreCounts: Sendable {
  package var accounts = 0
  package var documents = 0
  package var folders = 0
  package var versions = 0
  package var deleted = 0
  package var events = 0
  package var contentBytes: Int64 = 0
  package var storedBytes: Int64 = 0
  /// Documents with a conflict, and those that hubs put beside others.
  package var conflicts = 0
}

extension StoreTransaction {
  package func counts() throws -> StoreCounts {
    func number(_ sql: String) throws -> Int64 { try first(sql) { try ($0[0] as Int64?) ?? 0 } ?? 0 }
    var counts = StoreCounts()
    counts.accounts = Int(try number("SELECT count(*) FROM accounts WHERE removed IS NULL AND hub IS NULL"))
    counts.documents = Int(try number("SELECT count(*) FROM inodes WHERE mode & 61440 = 32768 AND nlink > 0"))
    counts.folders = Int(
      try number("SELECT count(*) FROM inodes WHERE mode & 61440 = 16384 AND nlink > 0 AND parent > 0"))
    counts.versions = Int(try number("SELECT count(*) FROM versions"))
    let conflicts = try number(
      """
      SELECT count(*) FROM items WHERE conflict IS NOT NULL
        AND EXISTS (SELECT 1 FROM inodes WHERE inodes.item = items.id AND nlink > 0)
      """)
    counts.conflicts = try Int(conflicts) + hubCopies()
    counts.deleted = Int(try number("SELECT count(*) FROM deleted"))
    counts.events = Int(
      try number("SELECT count(*) FROM events") + number("SELECT count(*) FROM replica_events WHERE number > 0"))
    counts.contentBytes = try contentBytes()
    counts.storedBytes =
      try number("SELECT sum(length(data)) FROM chunks") + number("SELECT sum(length(data)) FROM packs")
    return counts
  }

  /// How many documents without another conflict hubs put beside others, and nobody renamed since. Few names have what
  /// those have, so few states are looked at.
  private func hubCopies() throws -> Int {
    try all(
      """
      SELECT n.name FROM inodes n CROSS JOIN items i ON i.id = n.item
        CROSS JOIN replica_items r ON r.account = i.owner AND r.item = i.uuid
      WHERE n.mode & 61440 = 32768 AND n.nlink > 0 AND instr(n.name, CAST(' (' AS BLOB)) > 0 AND i.conflict IS NULL
        AND json_extract(r.base, '$.copyOf') IS NOT NULL
      """
    ) { try $0.name(0) }.count(where: HubCopyName.isOne)
  }

  /// The sizes of all documents together, at most `Int64.max`. Sparse files can add up to more, which SQLite's `sum`
  /// takes for an error; halves of the numbers cannot.
  private func contentBytes() throws -> Int64 {
    let sum = "SELECT sum(size >> 32), sum(size & 4294967295) FROM inodes WHERE mode & 61440 = 32768 AND nlink > 0"
    let halves = try first(sum) { ((try $0[0] as Int64?) ?? 0, (try $0[1] as Int64?) ?? 0) } ?? (0, 0)
    let (high, overflows) = halves.0.multipliedReportingOverflow(by: 1 << 32)
    let (total, overflowsToo) = high.addingReportingOverflow(halves.1)
    return overflows || overflowsToo ? .max : total
  }

  /// What is wrong with chunks.
  private struct ChunkDamage {
    var lines: [String] = []
    private(set) var chunks: Set<Int64> = []

    mutating func note(_ problems: [String], of chunk: Int64) {
      guard !problems.isEmpty else { return }
      chunks.insert(chunk)
      lines += problems.map { "chunk \(chunk): \($0)" }
    }
  }

  /// Problems of one kind after which the check looks for no more.
  private static let problemLimit = 1000

  /// Verifies every chunk's hash, every list of extents, every rule of docs/FORMAT.md and what the tables demand.
  package func check(progress: (SheafModel.Progress) -> Void) throws -> CheckReport {
    let columns = try ColumnRules.findings(self)
    var problems = columns.problems
    let total = try first("SELECT count(*) FROM chunks") { try $0[0] as Int64 } ?? 0
    // Where a value is not of its column's type, the rest could not be read.
    guard columns.isReadable else { return try report(problems, chunks: total, damaged: []) }
    for (rule, sql) in CheckRules.queries {
      for (first, second) in try all(sql + " LIMIT 20", decode: { (try $0[0] as Int64, try ($0[1] as Int64?) ?? 0) }) {
        problems.append("\(rule): not so for (\(first), \(second))")
      }
    }
    try checkNames(&problems)
    var sizes: [Int64: Int64] = [:]
    var packed: [Int64: PackPlace] = [:]
    var damage = ChunkDamage()
    var done: Int64 = 0
    func countOne() {
      done += 1
      if done % 256 == 0 || done == total { progress(.init(done: done, total: total)) }
    }
    /// Of what was read last.
    var last = Int64.min
    func checkChunk(_ row: Row) throws -> Bool {
      let id: Int64 = try row[0]
      last = id
      let (size, data): (Int64, [UInt8]) = try (row[2], try row.bytes(4))
      if id <= 0 { damage.note(["its number is not positive"], of: id) }
      sizes[id] = size
      switch ChunkEncoding(rawValue: try row[3]) {
      case .plain: damage.note(Self.problems(of: data, hash: try row.bytes(1), size: size), of: id)
      case .compressed:
        if let bytes = Self.decompress(data, size: size) {
          damage.note(Self.problems(of: bytes, hash: try row.bytes(1), size: size), of: id)
        } else {
          damage.note(["cannot be decoded"], of: id)
        }
      case .packed:
        if let place = try? PackPlace(encoded: data) {
          packed[id] = place
          // A packed chunk counts with its pack.
          return damage.lines.count < Self.problemLimit
        }
        damage.note(["it is in no pack"], of: id)
      case nil: damage.note(["unknown encoding"], of: id)
      }
      countOne()
      return damage.lines.count < Self.problemLimit
    }
    while true {
      do {
        try each(
          "SELECT id, hash, size, encoding, data FROM chunks WHERE id > ? ORDER BY id", last, body: checkChunk)
        break
      } catch let error as SQLiteError where error.code & 0xFF == SQLITE_CORRUPT {
        // One of the pages that hold its bytes is none; its number is on another page.
        guard
          let id = try first(
            "SELECT id FROM chunks WHERE id > ? ORDER BY id LIMIT 1", last, decode: { try $0[0] as Int64 })
        else { throw error }
        damage.note(["cannot be read"], of: id)
        (last, sizes[id]) = (id, try first("SELECT size FROM chunks WHERE id = ?", id) { try $0[0] as Int64 })
        countOne()
        guard damage.lines.count < Self.problemLimit else { break }
      }
    }
    try checkPacks(&packed, &damage, countOne)
    problems += damage.lines
    // Without all chunks, contents would seem to miss some.
    let isComplete = done == total
    if isComplete { try checkContents(sizes, &problems) }
    let damaged =
      problems.isEmpty
      ? [] : try damagedDocuments { !damage.chunks.contains($0) && (sizes[$0] != nil || !isComplete) }
    return try report(problems, chunks: total, damaged: damaged)
  }

  private func report(_ problems: [String], chunks: Int64, damaged: [DamagedDocument]) throws -> CheckReport {
    CheckReport(
      problems: problems, chunks: Int(chunks),
      versions: Int(try first("SELECT count(*) FROM versions") { try $0[0] as Int64 } ?? 0),
      items: Int(try first("SELECT count(*) FROM items") { try $0[0] as Int64 } ?? 0), damaged: damaged,
      atHub: try contentsAtHub())
  }

  private static func problems(of bytes: [UInt8], hash: [UInt8], size: Int64) -> [String] {
    var problems: [String] = []
    if bytes.withUnsafeBytes({ ChunkHash(of: $0) }).bytes != hash { problems.append("its bytes do not have its hash") }
    if size != Int64(bytes.count) { problems.append("its size is wrong") }
    return problems
  }

  /// Makes every packed chunk, one after the other in each pack.
  ///
  /// - Parameter packed: the place of each; the checked ones are taken out.
  private func checkPacks(
    _ packed: inout [Int64: PackPlace], _ damage: inout ChunkDamage, _ countOne: () -> Void
  ) throws {
    try each("SELECT id, chunks FROM packs ORDER BY id") { row in
      let id: Int64 = try row[0]
      let members = (try? Pack.decodeChunks(row.bytes(1))) ?? []
      func isMember(_ index: Int) -> Bool { packed[members[index]] == PackPlace(pack: id, index: index) }
      do {
        guard let pack = try pack(id) else { return true }
        var reader = PackReader(pack, base: try baseBytes(pack.base))
        for (index, chunk) in members.enumerated() {
          _ = try reader.advance()
          guard isMember(index) else { continue }
          let row = try first("SELECT hash, size FROM chunks WHERE id = ?", chunk) {
            (try $0.bytes(0), try $0[1] as Int64)
          }
          damage.note(Self.problems(of: reader.bytes, hash: row?.0 ?? [], size: row?.1 ?? 0), of: chunk)
          packed[chunk] = nil
          countOne()
        }
      } catch {
        damage.lines.append("pack \(id): it or its base is damaged")
        for (index, chunk) in members.enumerated() where isMember(index) {
          damage.note(["cannot be made from its pack"], of: chunk)
          packed[chunk] = nil
          countOne()
        }
      }
      return damage.lines.count < Self.problemLimit
    }
    for chunk in packed.keys.sorted() {
      guard damage.lines.count < Self.problemLimit else { return }
      damage.note(["it is in no pack"], of: chunk)
      countOne()
    }
  }

  /// The rules that SQL cannot express.
  private func checkNames(_ problems: inout [String]) throws {
    for (rule, condition) in [
      (CheckRules.numberSetting, CheckRules.isNoNumber), (CheckRules.textSetting, CheckRules.isNoText),
    ] {
      problems += try all("SELECT key FROM settings WHERE \(condition)") { try $0[0] as String }
        .map { "\(rule): not so for \($0.printable)" }
    }
    for handle in try all("SELECT handle FROM accounts", decode: { try $0[0] as String })
    where (try? AccountHandle(handle)) == nil {
      problems.append("\(CheckRules.handle): not so for \(handle.printable)")
    }
    var found: [String] = []
    let settings = try first(
      """
      SELECT (SELECT value FROM settings WHERE key = 'library' AND typeof(value) = 'text'),
        (SELECT value FROM settings WHERE key = 'hashKey' AND typeof(value) = 'integer')
      """
    ) { (library: try $0[0] as String?, key: try $0[1] as Int64?) }
    if settings?.library.flatMap({ UUID(uuidString: $0) }) == nil {
      problems.append("\(CheckRules.library): not so")
    }
    guard let key = settings?.key else {
      problems.append("\(CheckRules.hashKey): not so")
      return
    }
    let hash = NameHash(key: key)
    try each("SELECT parent, hash, name FROM entries") { row in
      if try hash(row.bytes(2)) != row[1] as Int64 {
        found.append("\(CheckRules.entryHash): not so for (\(try row[0] as Int64), \(try row[1] as Int64))")
      }
      return found.count < 20
    }
    problems += found
  }

  private func checkContents(_ sizes: [Int64: Int64], _ problems: inout [String]) throws {
    var found: [String] = []
    let absent = try Dictionary(
      all("SELECT id, size FROM absent_contents") { (try $0[0] as Int64, try $0[1] as Int64) }
    ) { $1 }
    func check(_ extents: [Extent], _ subject: String) {
      for extent in extents where extent.isAbsent {
        if absent[extent.chunk].map({ extent.offset + extent.length > $0 }) ?? true {
          found.append("\(subject): bytes are not here, and no row says who has them")
        }
      }
      for extent in extents where extent.isStored {
        guard let size = sizes[extent.chunk] else {
          found.append("\(subject): chunk \(extent.chunk) is missing")
          continue
        }
        if extent.offset + extent.length > size { found.append("\(subject): chunk \(extent.chunk) is too short") }
      }
    }
    var nodes: Set<ExtentNode> = []
    for (what, sql) in [
      ("inode", "SELECT ino, 0, size, content FROM inodes WHERE mode & 61440 = 32768"),
      ("version", "SELECT item, number, size, content FROM versions"),
    ] {
      try each(sql) { row in
        let subject =
          what == "inode"
          ? "inode \(try row[0] as Int64)" : "version \(try row[1] as Int64) of item \(try row[0] as Int64)"
        guard let content = try? StoredContent(encoded: row.bytes(3)) else {
          found.append("\(subject): its list of extents is damaged")
          return true
        }
        if try content.length != row[2] as Int64 { found.append("\(subject): its size is not that of its contents") }
        switch content {
        case .extents(let extents): check(extents, subject)
        case .nodes(let list): nodes.formUnion(list)
        }
        return found.count < Self.problemLimit
      }
    }
    try each("SELECT ino, writes FROM working_copies") { row in
      if (try? WriteLog(encoded: row.bytes(1))) == nil {
        found.append("working copy of inode \(try row[0] as Int64): its steps cannot be read")
      }
      return found.count < Self.problemLimit
    }
    for node in nodes {
      guard found.count < Self.problemLimit else { break }
      guard let bytes = try? chunkBytes(node.chunk), let extents = try? StoredContent.decodeNode(bytes) else {
        found.append("node \(node.chunk): is missing or damaged")
        continue
      }
      let content = StoredContent.extents(extents)
      if content.length != node.length || content.dataLength != node.data || content.absentLength != node.absent {
        found.append("node \(node.chunk): its length is wrong")
      }
      check(extents, "node \(node.chunk)")
    }
    problems += found
  }
}
