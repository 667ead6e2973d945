import Testing

@testable import SheafStore

/// What names lead to, which the writer remembers.
struct EntryTests {
  /// Whatever is made, moved, replaced, removed and undone, each name leads to what its folder lists.
  @Test func whatIsRememberedIsWhatIsStored() throws {
    struct Stop: Error {}
    var generator = SeededRandom()
    let seed = generator.seed
    func random(_ bound: Int64) -> Int64 { .random(in: 0..<bound, using: &generator) }
    try withFolder { folder in
      let path = folder + "/library.sqlite"
      let store = try Store(path: path, lockPath: path + "-lock")
      let hash = NameHash(key: 1)
      let parent: Int64 = 100
      func entry(_ name: Int64, ino: Int64) -> EntryRow {
        let bytes = Array("name\(name)".utf8)
        return EntryRow(parent: parent, hash: hash(bytes), name: bytes, ino: ino, isExtra: ino % 2 == 1)
      }
      func stored(_ row: EntryRow, _ transaction: StoreTransaction) throws -> EntryRow? {
        try transaction.entry(row.parent, hash: row.hash, name: row.name)
      }
      for step in 0..<400 {
        let fails = random(3) == 0
        do {
          try store.write(.rename) { transaction in
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
        } catch {
          #expect(fails, "SHEAF_SEED=\(seed), step \(step): \(error)")
        }
        // By name first, before what waits to be run is.
        let found = try (0..<5).map { name in try store.read { try stored(entry(Int64(name), ino: 0), $0) } }
        let listed = try store.read { try $0.entries(parent, after: 0, limit: 100) }
        for name in 0..<5 {
          let row = entry(Int64(name), ino: 0)
          #expect(found[name] == listed.first { $0.name == row.name }, "SHEAF_SEED=\(seed), step \(step)")
        }
      }
      try store.close()
    }
  }
}
