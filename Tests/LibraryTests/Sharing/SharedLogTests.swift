import Foundation
import Glibc
import SheafModel
import Testing

@testable import SheafLibrary

/// Several accounts that append to one document at once, each with a file that stays open, as programs keep a log.
struct SharedLogTests {
  private let mine = "Documents/plans/log"
  private let theirs = "Shared/alice@example.com/plans/log"
  // Numbers of processes that there are none of.
  private let logger: Int32 = 5_000_001
  private let editor: Int32 = 5_000_002

  private func together(_ body: (People) throws -> Void) throws {
    try People.story { people in
      try people.as(.alice, process: editor) { (me) throws in
        try me.mkdir("Documents/plans")
        try me.save(mine, "begin;")
      }
      people.clock.advance(20)
      try people.share("Documents/plans", with: [(.bob, .readWrite), (.carol, .readWrite)])
      try body(people)
    }
  }

  private func append(_ me: Person, _ handle: UInt64, _ text: String) throws {
    try Array(text.utf8).withUnsafeBytes { try me.library.write(handle, at: 0, $0, appends: true) }
  }

  private func autosave(_ people: People) {
    people.clock.advance(2)
    people.fixture.autosave()
  }

  private func expectNoConflict(_ people: People) throws {
    try people.as(.alice) { (me) throws in
      #expect(try me.library.itemStatus(me.path(mine)).conflict == nil)
      let versions = try me.versions(mine)
      #expect(versions.dropFirst().allSatisfy { $0.base == $0.number - 1 }, "\(versions.map(\.base))")
      #expect(try me.names("Documents/plans") == ["log"])
    }
  }

  @Test func noLineIsLostAndEachLogKeepsItsOrder() throws {
    var random = SeededRandom()
    for _ in 0..<20 {
      try together { people in
        let names: [People.Name] = [.alice, .bob, .carol]
        var handles = try names.map { name in
          try people.as(name, process: logger) { try $0.open(name == .alice ? mine : theirs, O_WRONLY | O_APPEND) }
        }
        var counts = [0, 0, 0]
        for _ in 0..<60 {
          let index = Int.random(in: 0..<3, using: &random)
          let name = names[index]
          let path = name == .alice ? mine : theirs
          try people.as(name, process: logger) { (me) throws in
            switch Int.random(in: 0..<10, using: &random) {
            case 0: autosave(people)
            case 1: try me.library.flush(handles[index])
            case 2: try me.library.fsync(me.inode(path))
            case 3:
              try me.close(handles[index])
              handles[index] = try me.open(path, O_WRONLY | O_APPEND)
            default:
              try append(me, handles[index], "\(name.rawValue) \(counts[index]);")
              counts[index] += 1
            }
          }
        }
        for (name, handle) in zip(names, handles) { try people.as(name, process: logger) { try $0.close(handle) } }
        let text = try people.as(.alice) { try $0.read(mine) }
        let lines = text.split(separator: ";").map(String.init)
        #expect(lines.first == "begin", random.note)
        for (name, count) in zip(names, counts) {
          let own = lines.filter { $0.hasPrefix(name.rawValue) }
          #expect(own == (0..<count).map { "\(name.rawValue) \($0)" }, random.note)
        }
        #expect(lines.count == counts.reduce(1, +), random.note)
        try expectNoConflict(people)
      }
    }
  }

  /// By its name before the loggers open it, or while they have it open, as logrotate(8) does with `copytruncate`.
  @Test(arguments: [true, false]) func noLineIsLostAfterTheLogWasEmptied(_ isOpen: Bool) throws {
    try together { people in
      let open = { (name: People.Name) throws in
        try people.as(name, process: logger) { try $0.open(name == .alice ? mine : theirs, O_WRONLY | O_APPEND) }
      }
      var handles: [UInt64] = []
      if isOpen {
        handles = [try open(.alice), try open(.bob)]
        try people.as(.alice, process: logger) { try append($0, handles[0], "a;") }
        try people.as(.bob, process: logger) { try append($0, handles[1], "b;") }
      }
      try people.as(.alice, process: editor) { (me) throws in
        try me.close(try me.open(mine, O_WRONLY | O_TRUNC))
      }
      if !isOpen { handles = [try open(.alice), try open(.bob)] }
      for number in 0..<8 {
        for (name, handle) in zip([People.Name.alice, .bob], handles) {
          try people.as(name, process: logger) { (me) throws in
            try append(me, handle, "\(name.rawValue) \(number);")
            if number % 2 == 0 { try me.library.fsync(me.inode(name == .alice ? mine : theirs)) }
          }
        }
        if number == 3 { autosave(people) }
      }
      for (name, handle) in zip([People.Name.alice, .bob], handles) {
        try people.as(name, process: logger) { try $0.close(handle) }
      }
      let lines = try people.as(.alice) { try $0.read(mine) }.split(separator: ";").map(String.init)
      for name in ["alice", "bob"] {
        #expect(lines.filter { $0.hasPrefix("\(name) ") } == (0..<8).map { "\(name) \($0)" })
      }
      #expect(try people.as(.alice) { try $0.library.itemStatus($0.path(mine)).conflict } == nil)
    }
  }

  /// What somebody else saved since may be longer than what the account had until then.
  @Test(arguments: ["append", "append through another file", "punch a hole"])
  func whoGoesOnAfterAnothersSaveBeginsAtItsEnd(_ how: String) throws {
    try together { people in
      let alice = try people.as(.alice, process: editor) { (me) throws in
        let alice = try me.open(mine, O_RDWR)
        #expect(try me.read(alice) == "begin;")
        try me.write(alice, "B")
        return alice
      }
      if how == "append" { autosave(people) } else { try people.library.flush(alice) }
      let bob = try people.as(.bob, process: editor) { (me) throws in
        let bob = try me.open(theirs, O_RDWR)
        #expect(try me.read(bob) == "Begin;")
        try me.write(bob, "it goes on;", at: 6)
        return bob
      }
      autosave(people)
      try people.as(.alice, process: editor) { (me) throws in
        let other = how == "append" ? alice : try me.open(mine, O_RDWR | O_APPEND)
        if how == "punch a hole" {
          try me.library.allocate(other, 0..<100, .punchHole)
          #expect(try me.read(other) == String(repeating: "\0", count: 17))
        } else {
          try append(me, other, "end;")
          #expect(try me.read(other) == "Begin;it goes on;end;")
        }
        if other != alice { try me.close(other) }
      }
      try people.as(.bob, process: editor) { try $0.close(bob) }
      try people.as(.alice, process: editor) { try $0.close(alice) }
      if how != "punch a hole" {
        #expect(try people.as(.alice) { try $0.read(mine) } == "Begin;it goes on;end;")
        try expectNoConflict(people)
      }
    }
  }

  @Test func anOpenFileShowsWhatAnotherAccountAppended() throws {
    try together { people in
      let alice = try people.as(.alice, process: logger) { try $0.open(mine, O_RDWR | O_APPEND) }
      let bob = try people.as(.bob, process: logger) { try $0.open(theirs, O_RDWR | O_APPEND) }
      try people.as(.alice, process: logger) { try append($0, alice, "a1;") }
      try people.as(.bob, process: logger) { try append($0, bob, "b1;") }
      try people.library.flush(alice)
      try people.as(.bob, process: logger) { (me) throws in
        #expect(try me.read(bob) == "begin;a1;b1;" && me.status(theirs).size == 12)
      }
      autosave(people)
      try people.as(.alice, process: logger) { (me) throws in
        #expect(try me.read(alice) == "begin;a1;b1;")
        try append(me, alice, "a2;")
        try me.close(alice)
      }
      try people.as(.bob, process: logger) { (me) throws in
        #expect(try me.read(bob) == "begin;a1;b1;a2;")
        try me.close(bob)
      }
      #expect(try people.as(.alice) { try $0.read(mine) } == "begin;a1;b1;a2;")
      try expectNoConflict(people)
    }
  }

  /// As on a local disk, an append goes to the end of what is there then.
  @Test(arguments: [O_TRUNC, 0]) func whatIsAppendedOutlivesAChangeOfTheRest(_ flag: Int32) throws {
    try together { people in
      let bob = try people.as(.bob, process: logger) { (me) throws in
        let bob = try me.open(theirs, O_WRONLY | O_APPEND)
        try append(me, bob, "b1;")
        return bob
      }
      try people.as(.alice, process: editor) { (me) throws in
        let alice = try me.open(mine, O_RDWR | flag)
        try me.write(alice, "BEGIN")
        try me.close(alice)
      }
      let expected = flag == 0 ? "BEGIN;b1;" : "BEGINb1;"
      try people.as(.bob, process: logger) { (me) throws in
        try me.close(bob)
        #expect(try me.read(theirs) == expected)
      }
      try expectNoConflict(people)
    }
  }

  /// Whoever edits goes on with what they have, and what is written from that passes over nothing in silence.
  @Test(arguments: [true, false]) func whoWritesElsewhereThanAtTheEndPassesOverNothingInSilence(
    _ isLogging: Bool
  ) throws {
    try together { people in
      let bob = try people.as(.bob, process: editor) { (me) throws in
        let bob = try me.open(theirs, O_RDWR)
        #expect(try me.read(bob) == "begin;")
        return bob
      }
      let log = try people.as(.bob, process: logger) { (me) throws in
        let log = try me.open(theirs, O_WRONLY | O_APPEND)
        if isLogging { try append(me, log, "b1;") }
        return log
      }
      if !isLogging { try people.as(.bob, process: editor) { try $0.write(bob, "begin") } }
      try people.as(.alice, process: editor) { (me) throws in
        let alice = try me.open(mine, O_WRONLY | O_APPEND)
        try append(me, alice, "a1;")
        try me.close(alice)
      }
      try people.as(.bob, process: editor) { (me) throws in
        try me.write(bob, "BEGIN")
        try me.close(bob)
      }
      try people.as(.bob, process: logger) { try $0.close(log) }
      try people.as(.alice) { (me) throws in
        #expect(try me.library.itemStatus(me.path(mine)).conflict == 2)
        #expect(try me.versions(mine).last?.base == 1)
        #expect(try me.read(mine) == (isLogging ? "BEGIN;a1;b1;" : "BEGIN;"))
      }
    }
  }
}
