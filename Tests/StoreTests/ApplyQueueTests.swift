import Foundation
import Glibc
import SheafModel
import Synchronization
import Testing

@testable import SheafStore

/// SQLite runs what is recorded after it was answered: nobody may see that.
struct ApplyQueueTests {
  /// Debug builds stop at a statement that changes remembered rows and notes nothing of it: they know it by its text.
  @Test(arguments: [
    ("INSERT INTO entries (parent) VALUES (?)", true),
    ("INSERT OR IGNORE INTO items(id) VALUES (?)", true),
    ("UPDATE chunks SET data = ? WHERE id = ?", true),
    ("UPDATE OR REPLACE versions SET label = NULL", true),
    ("DELETE FROM versions\nWHERE item = ?", true),
    ("REPLACE INTO xattrs VALUES (?,?,?)", true),
    ("SELECT id FROM chunks WHERE hash = ?", false),
    ("INSERT INTO settings (key, value) SELECT 'x', id FROM items", false),
    ("UPDATE inodes SET nlink = ?", false),
    ("DELETE FROM events", false),
  ])
  func changesOfRememberedRowsAreToldByTheirText(_ sql: String, _ isChange: Bool) {
    #expect(KnownRows.areChanged(by: sql) == isChange)
  }

  /// Rows that are looked up by their keys ahead of what waits are those that the changes made, whatever is remembered,
  /// forgotten, undone or run in between.
  @Test func whatIsLookedUpIsWhatWasDone() throws {
    struct Stop: Error {}
    struct Model: Equatable {
      var xattrs: [Int64: [UInt8]] = [:]
      var chunks: [ChunkHash: Int64] = [:]
      var versions: [Int64: VersionRow] = [:]
    }
    var generator = SeededRandom()
    let seed = generator.seed
    func random(_ bound: Int64) -> Int64 { .random(in: 0..<bound, using: &generator) }
    try withFolder { folder in
      let path = folder + "/library.sqlite"
      let store = try Store(path: path, lockPath: path + "-lock")
      var model = Model()
      var nextChunk: Int64 = 1
      let hashes = (0..<8).map { number in withUnsafeBytes(of: number) { ChunkHash(of: $0) } }
      func check(_ transaction: StoreTransaction, _ model: Model, _ step: Int) throws {
        let note = Comment(rawValue: "SHEAF_SEED=\(seed), step \(step)")
        let (ino, hash, number) = (1 + random(6), hashes[Int(random(8))], 1 + random(4))
        #expect(try transaction.xattr(ino, [65]) == model.xattrs[ino], note)
        #expect(try transaction.chunk(hash: hash) == model.chunks[hash], note)
        #expect(try transaction.version(7, number) == model.versions[number], note)
      }
      for step in 0..<1500 {
        var changed = model
        let fails = random(5) == 0
        do {
          try store.write(.setXattr) { transaction in
            for _ in 0...random(3) {
              try change(transaction, &changed)
              // Sometimes in the midst of the change.
              if random(4) == 0 { try check(transaction, changed, step) }
              // What reads something else has everything run.
              if random(12) == 0 { _ = try transaction.setting("library") }
            }
            if fails { throw Stop() }
          }
          model = changed
        } catch { #expect(fails, "SHEAF_SEED=\(seed), step \(step): \(error)") }
        try store.read { try check($0, model, step) }
        if random(100) == 0 { try store.snapshot { try check($0, model, step) } }
      }
      func change(_ transaction: StoreTransaction, _ model: inout Model) throws {
        let ino = 1 + random(6)
        let number = 1 + random(4)
        let hash = hashes[Int(random(8))]
        switch random(10) {
        case 0:
          // A long value is not remembered.
          let value = [UInt8](repeating: UInt8(random(256)), count: random(3) == 0 ? 300 : 3)
          try transaction.setXattr(ino, [65], value)
          model.xattrs[ino] = value
        case 1:
          try transaction.removeXattr(ino, [65])
          model.xattrs[ino] = nil
        case 2:
          try transaction.removeXattrs([[65]], of: ino)
          try transaction.deleteInode(ino)
          model.xattrs[ino] = nil
        case 9:
          let other = 1 + random(6)
          try transaction.copyXattrs([[65]], from: ino, to: other)
          model.xattrs[other] = model.xattrs[other] ?? model.xattrs[ino]
        case 3, 4:
          if let id = model.chunks[hash] {
            try transaction.deleteChunk(id)
            model.chunks[hash] = nil
          } else {
            try withUnsafeBytes(of: step(hash)) { try transaction.insertChunk(nextChunk, hash: hash, bytes: $0) }
            model.chunks[hash] = nextChunk
            nextChunk += 1
          }
        case 5, 6:
          let extents = (0..<(random(3) == 0 ? 20 : 1)).map { _ in Extent(chunk: 1, offset: 0, length: 1 + random(50)) }
          var row = VersionRow(
            item: 7, number: number, time: Timestamp(nanoseconds: random(1000)), author: 1, size: 1, cause: .save,
            base: nil, content: .extents(extents), isOpen: random(2) == 0)
          if let present = model.versions[number] {
            try transaction.update(row)
            row.label = present.label
          } else {
            try transaction.insert(row)
          }
          model.versions[number] = row
        case 7:
          switch random(3) {
          case 0:
            try transaction.deleteVersion(7, number)
            model.versions[number] = nil
          case 1:
            try transaction.closeVersion(7, number, cause: .replace)
            model.versions[number]?.isOpen = false
            model.versions[number]?.cause = .replace
          default:
            try transaction.setLabel(7, number, "label")
            for (other, row) in model.versions where row.label != nil { model.versions[other]?.label = nil }
            model.versions[number]?.label = "label"
          }
        default:
          if let row = model.versions[number] {
            try transaction.recode(7, number, to: .extents([Extent(chunk: 9, offset: 0, length: 5)]))
            var row = row
            row.content = .extents([Extent(chunk: 9, offset: 0, length: 5)])
            model.versions[number] = row
          }
        }
      }
      func step(_ hash: ChunkHash) -> Int { hash.bytes.count }
      try store.close()
      // What SQLite has in the end, without anything remembered.
      let again = try Store(path: path, lockPath: path + "-lock")
      try again.snapshot { (transaction: StoreTransaction) throws in
        for ino in Int64(1)...6 { #expect(try transaction.xattr(ino, [65]) == model.xattrs[ino], "SHEAF_SEED=\(seed)") }
        for hash in hashes { #expect(try transaction.chunk(hash: hash) == model.chunks[hash], "SHEAF_SEED=\(seed)") }
        for number in Int64(1)...4 {
          #expect(try transaction.version(7, number) == model.versions[number], "SHEAF_SEED=\(seed)")
        }
      }
      try again.close()
    }
  }

  /// Threads that change and read at once, while what they do is run behind them, each see their own last word.
  @Test func everyThreadSeesWhatItDid() throws {
    try withFolder { folder in
      let path = folder + "/library.sqlite"
      let store = try Store(path: path, lockPath: path + "-lock")
      DispatchQueue.concurrentPerform(iterations: 4) { thread in
        do {
          for number in 1...1500 {
            try store.write(.accounts) { try $0.setSetting("test\(thread)", "\(number)") }
            try store.write(.setXattr) { try $0.setXattr(Int64(thread), [65], [UInt8(number % 256)]) }
            #expect(try store.read { try $0.xattr(Int64(thread), [65]) } == [UInt8(number % 256)])
            if number % 3 == 0 { #expect(try store.read { try $0.setting("test\(thread)") } == "\(number)") }
            if number % 500 == 0 { #expect(try store.snapshot { try $0.setting("test\(thread)") } == "\(number)") }
          }
        } catch { Issue.record("\(error)") }
      }
      try store.close()
    }
  }

  /// What the file holds is what was changed up to the number that it notes, whoever has it committed while others
  /// change more.
  @Test func aCommitHoldsWhatWasRecordedBeforeIt() throws {
    try withFolder { folder in
      let path = folder + "/library.sqlite"
      let store = try Store(path: path, lockPath: path + "-lock")
      let isDone = Atomic(false)
      try store.write(.mkdir) {
        try $0.insert(
          InodeRow(
            ino: 100, item: nil, owner: 1, parent: 1, name: [65], mode: S_IFDIR | 0o755, nlink: 2, uid: 0, gid: 0,
            time: Timestamp(nanoseconds: 0)))
      }
      let first = store.writer.number
      DispatchQueue.concurrentPerform(iterations: 3) { thread in
        do {
          if thread == 0 {
            defer { isDone.store(true, ordering: .releasing) }
            for number in 1...20_000 {
              try store.write(.setXattr) { transaction in
                try transaction.setXattr(1, [65], Array("\(number)".utf8))
                try transaction.touch(folder: 100, time: Timestamp(nanoseconds: Int64(number)), nlink: 2)
              }
              if number % 1000 == 0 { _ = try store.read { try $0.setting("library") } }
            }
          }
          while thread != 0, !isDone.load(ordering: .acquiring) {
            // Each sees what another one has committed, too.
            let (last, value, folder) = try store.snapshot {
              try ($0.numberSetting("change"), $0.xattr(1, [65]), $0.inode(100))
            }
            let number = try #require(last) - first
            // Though it is set again right after, it was committed.
            #expect(folder?.mtime.nanoseconds == number)
            #expect(value.map { String(decoding: $0, as: UTF8.self) } == (number == 0 ? nil : "\(number)"))
          }
        } catch { Issue.record("\(error)") }
      }
      try store.close()
    }
  }

  /// Whoever makes a change runs statements itself where the commit thread does not keep up, so that nobody who reads
  /// waits for very many.
  @Test func notManyMoreStatementsThanTheLimitWait() throws {
    try withFolder { folder in
      let path = folder + "/library.sqlite"
      let store = try Store(path: path, lockPath: path + "-lock")
      // It runs none.
      store.writer.schedule.stop()
      var longest = 0
      for ino in 1...Int64(3 * ApplyQueue.limit) {
        try store.write(.setXattr) { try $0.setXattr(ino, [65], [66]) }
        longest = max(longest, store.writer.waitingStatements)
      }
      #expect(longest > ApplyQueue.limit / 2 && longest <= ApplyQueue.limit + ApplyQueue.share)
      #expect(try store.read { try $0.xattr(1, [65]) } == [66])
      try store.close()
    }
  }

  /// A folder's times and link count are those that were set last, whatever else is written to its row, wherever the
  /// process ends, and however often it is set before SQLite runs any of it.
  @Test func whatIsSetAgainIsSet() throws {
    var generator = SeededRandom()
    let seed = generator.seed
    func random(_ bound: Int64) -> Int64 { .random(in: 0..<bound, using: &generator) }
    try withFolder { folder in
      let path = folder + "/library.sqlite"
      let store = try Store(path: path, lockPath: path + "-lock")
      var rows: [Int64: InodeRow] = [:]
      try store.write(.mkdir) { transaction in
        for ino in Int64(100)..<104 {
          let row = InodeRow(
            ino: ino, item: nil, owner: 1, parent: 1, name: [65], mode: S_IFDIR | 0o755, nlink: 2, uid: 0, gid: 0,
            time: Timestamp(nanoseconds: 0))
          try transaction.insert(row)
          rows[ino] = row
        }
      }
      func check(_ store: Store, _ note: String) throws {
        try store.read { transaction in
          for (ino, row) in rows {
            let found = try transaction.inode(ino)
            #expect(found == row, "SHEAF_SEED=\(seed), \(note)")
          }
        }
      }
      for step in 0..<800 {
        try store.write(.mkdir) { transaction in
          for _ in 0...random(3) {
            let ino = 100 + random(4)
            guard var row = rows[ino] else { continue }
            let time = Timestamp(nanoseconds: Int64(step))
            switch random(8) {
            case 0:
              (row.mtime, row.uid) = (time, UInt32(step))
              try transaction.update(row)
            case 1:
              (row.ctime, row.nlink) = (time, 2 + random(5))
              try transaction.setChangeTime(time, nlink: row.nlink, ino: ino)
            case 2:
              (row.parent, row.ctime) = (random(50), time)
              try transaction.setPlace(row.parent, row.name, time: time, ino: ino)
            default:
              (row.mtime, row.ctime, row.nlink) = (time, time, 2 + random(5))
              try transaction.touch(folder: ino, time: time, nlink: row.nlink)
            }
            rows[ino] = row
          }
        }
        switch random(40) {
        case 0: try check(store, "step \(step)")
        case 1: try store.writer.commit()
        case 2:
          // As a kill would leave it.
          let copy = folder + "/copy\(step).sqlite"
          for suffix in ["-changes", "", "-wal"] {
            try FileManager.default.copyItem(atPath: path + suffix, toPath: copy + suffix)
          }
          let again = try Store(path: copy, lockPath: copy + "-lock")
          try check(again, "step \(step), after a kill")
          try again.close()
        default: break
        }
      }
      try store.close()
      let again = try Store(path: path, lockPath: path + "-lock")
      try check(again, "closed")
      try again.close()
    }
  }

  /// A change that SQLite refuses when it was answered long ago: all before it is kept, nothing is said to be done
  /// after it is known, and the library can be opened again.
  @Test func whatIsRefusedTakesNothingBeforeItAlong() throws {
    try withFolder { folder in
      let path = folder + "/library.sqlite"
      let store = try Store(path: path, lockPath: path + "-lock")
      try store.write(.accounts) { try $0.setSetting("before", "yes") }
      func insert(_ step: DurableStep) throws {
        try store.write(step) { try $0.run("INSERT INTO settings (key, value) VALUES (?, ?)", "twice", "yes") }
      }
      try insert(.create)
      // Of what programs in the mount do not wait for, SQLite has its say first.
      #expect(throws: SheafError.self) { try insert(.accounts) }
      #expect(try store.read { try $0.setting("twice") } == "yes")
      try insert(.create)
      for _ in 1...3 {
        #expect(throws: SheafError.self) { try store.read { try $0.setting("before") } }
        #expect(throws: SheafError.self) { try store.write(.accounts) { try $0.setSetting("after", "yes") } }
        #expect(throws: SheafError.self) { try store.snapshot { try $0.setting("before") } }
        #expect(throws: SheafError.self) { try store.sync(log: true) }
      }
      let copy = folder + "/copy.sqlite"
      for suffix in ["-changes", "", "-wal"] {
        try FileManager.default.copyItem(atPath: path + suffix, toPath: copy + suffix)
      }
      let again = try Store(path: copy, lockPath: copy + "-lock")
      #expect(try again.read { try $0.setting("before") } == "yes")
      #expect(try again.read { try $0.setting("twice") } == "yes")
      #expect(try again.read { try $0.setting("after") } == nil)
      let kept = try #require(again.refusedChanges)
      #expect(try FileManager.default.attributesOfItem(atPath: kept)[.size] as? Int ?? 0 > 0)
      try again.write(.accounts) { try $0.setSetting("after", "yes") }
      try again.close()
      let third = try Store(path: copy, lockPath: copy + "-lock")
      #expect(try third.read { try $0.setting("after") } == "yes")
      try third.close()
    }
  }
}
