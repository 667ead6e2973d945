import Glibc
import SheafModel
import Testing

@testable import SheafStore

/// What names lead to, which the writer remembers.
struct EntryTests {
  /// Whatever is made, moved, replaced, removed, undone and forgotten, each name leads to what its folder lists, also
  /// where all of a folder is known since it was made.
  @Test func whatIsRememberedIsWhatIsStored() throws {
    struct Stop: Error {}
    var generator = SeededRandom()
    let seed = generator.seed
    func random(_ bound: Int64) -> Int64 { .random(in: 0..<bound, using: &generator) }
    try withFolder { folder in
      let path = folder + "/library.sqlite"
      let store = try Store(path: path, lockPath: path + "-lock")
      let hash = NameHash(key: 1)
      // One that was there before, and those that are made.
      var parents: [Int64] = [100]
      func entry(_ name: Int64, ino: Int64, in folder: Int64? = nil) -> EntryRow {
        let bytes = Array("name\(name)".utf8)
        let parent = folder ?? parents[Int(random(Int64(parents.count)))]
        return EntryRow(
          parent: parent, hash: hash(bytes), name: bytes, ino: ino, isExtra: ino % 2 == 1,
          since: Timestamp(nanoseconds: 0))
      }
      func stored(_ row: EntryRow, _ transaction: StoreTransaction) throws -> EntryRow? {
        try transaction.entry(row.parent, hash: row.hash, name: row.name)
      }
      for step in 0..<600 {
        let fails = random(3) == 0
        let made = parents.count < 4 && random(12) == 0 ? Int64(1000 + step) : nil
        do {
          try store.write(.rename) { transaction in
            if let made {
              try transaction.insert(
                InodeRow(
                  ino: made, item: nil, owner: 1, parent: 1, name: [65], mode: S_IFDIR | 0o755, nlink: 2, uid: 0,
                  gid: 0,
                  time: Timestamp(nanoseconds: 0)))
              try transaction.insert(entry(0, ino: random(1000), in: made))
            }
            for _ in 0...random(3) {
              let one = entry(random(5), ino: random(1000))
              if let present = try stored(one, transaction) {
                switch random(3) {
                case 0: try transaction.delete(present)
                case 1: try transaction.update(one)
                default:
                  let other = entry(random(5), ino: present.ino)
                  if try stored(other, transaction) == nil { try transaction.move(present, to: other) }
                }
              } else {
                try transaction.insert(one)
              }
            }
            if fails { throw Stop() }
          }
          #expect(!fails)
          if let made { parents.append(made) }
        } catch {
          #expect(fails, "SHEAF_SEED=\(seed), step \(step): \(error)")
        }
        if random(60) == 0 {
          try store.read { for name in 0..<Int64(9000) { _ = try stored(entry(name, ino: 0, in: 7), $0) } }
        }
        // By name first, before what waits to be run is.
        let parent = parents[Int(random(Int64(parents.count)))]
        let rows = (0..<5).map { entry($0, ino: 0, in: parent) }
        let found = try rows.map { row in try store.read { try stored(row, $0) } }
        let listed = try store.read { try $0.entries(parent, after: 0, limit: 100) }
        for (row, found) in zip(rows, found) {
          #expect(found == listed.first { $0.name == row.name }, "SHEAF_SEED=\(seed), step \(step), folder \(parent)")
        }
      }
      #expect(parents.count == 4, "SHEAF_SEED=\(seed)")
      try store.close()
    }
  }
}
