import Foundation
import Glibc
import SheafModel
import Testing

@testable import SheafLibrary

/// Nobody sees what something was before it entered a share, wherever in that share it goes afterwards.
struct EntryTimeTests {
  private static let team = "Documents/team"
  private static let seen = "Shared/alice@example.com/team"

  /// A way in which `draft/sub`, or what is in it, gets out of the folder that was moved into the share.
  enum Way: CaseIterable {
    case moved, movedFile, exchanged, exchangedFile, linked, linkedByOwner, tunnelled

    /// Whether the folder goes along, and with it what was deleted from it.
    var takesFolder: Bool { self == .moved || self == .exchanged }
  }

  private func leave(_ way: Way, _ people: People) throws {
    try people.as(way == .linkedByOwner || way == .tunnelled ? .alice : .bob, process: getpid()) { (person) throws in
      let top = person.name == .bob ? Self.seen : Self.team
      switch way {
      case .moved: try person.rename("\(top)/draft/sub", "\(top)/sub")
      case .movedFile: try person.rename("\(top)/draft/sub/doc.txt", "\(top)/doc.txt")
      case .exchanged: try person.exchange("\(top)/draft/sub", "\(top)/other")
      case .exchangedFile:
        try person.mkdir("\(top)/folder")
        try person.exchange("\(top)/draft/sub/doc.txt", "\(top)/folder")
        try person.rename("\(top)/folder", "\(top)/doc.txt")
      case .linked, .linkedByOwner:
        try person.link("\(top)/draft/sub/doc.txt", "\(top)/doc.txt")
        try person.unlink("\(top)/draft/sub/doc.txt")
      case .tunnelled:
        // By a second name, which a program gives the file by renaming the first.
        try person.link("\(top)/draft/sub/doc.txt", "\(top)/doc.txt")
        try person.save("\(top)/draft/sub/new.txt", "four")
        try person.rename("\(top)/draft/sub/new.txt", "\(top)/draft/sub/doc.txt")
      }
    }
  }

  /// What was deleted before its folder entered does not come back with the folder, whoever brings that back.
  @Test func whatWasDeletedBeforeDoesNotComeAlong() throws {
    try People.story { people in
      try people.as(.alice) { (alice) throws in
        try alice.mkdir(Self.team)
        try alice.mkdir("Documents/draft")
        for name in ["secret", "open"] { try alice.save("Documents/draft/\(name)", name) }
      }
      try people.share(Self.team, with: [(.bob, .readWrite)])
      people.clock.advance(60)
      try people.as(.alice) { (alice) throws in
        try alice.unlink("Documents/draft/secret")
        people.clock.advance(1)
        try alice.rename("Documents/draft", "\(Self.team)/draft")
      }
      people.clock.advance(1)
      try people.as(.bob, process: getpid()) { (bob) throws in
        try bob.unlink("\(Self.seen)/draft/open")
        try bob.rmdir("\(Self.seen)/draft")
      }
      people.clock.advance(60)
      let alice = People.Name.alice.handle
      _ = try people.library.recover(ItemPath(account: alice, "\(Self.team)/draft"), id: nil) { _ in }
      #expect(try people.as(.bob) { try $0.names("\(Self.seen)/draft") } == ["open"])
      // Its owner can still have it back by its own name.
      _ = try people.library.recover(ItemPath(account: alice, "\(Self.team)/draft/secret"), id: nil) { _ in }
      #expect(try people.as(.alice) { try $0.names("\(Self.team)/draft") } == ["open", "secret"])
    }
  }

  /// What the owner did in a folder below the one that was moved in stays unseen: versions, deletions and events.
  @Test(arguments: Way.allCases)
  func historyBeforeEntryStaysHidden(_ way: Way) throws {
    try People.story { people in
      try people.as(.alice) { (alice) throws in
        for folder in [Self.team, "\(Self.team)/other", "Documents/draft", "Documents/draft/sub"] {
          try alice.mkdir(folder)
        }
        try people.share(Self.team, with: [(.bob, .readWrite)])
        people.clock.advance(60)
        for text in ["secret", "clean"] {
          try alice.save("Documents/draft/sub/doc.txt", text)
          people.clock.advance(60)
        }
        try alice.save("Documents/draft/sub/gone.txt", "gone")
        people.clock.advance(60)
        try alice.unlink("Documents/draft/sub/gone.txt")
        people.clock.advance(60)
      }
      try people.as(.alice) { try $0.rename("Documents/draft", "\(Self.team)/draft") }
      people.clock.advance(60)
      try people.as(.bob) { try $0.save("\(Self.seen)/draft/sub/doc.txt", "three") }
      people.clock.advance(60)
      try leave(way, people)
      people.clock.advance(60)
      try people.as(.bob) { (bob) throws in
        let path = way.takesFolder ? (way == .moved ? "sub/doc.txt" : "other/doc.txt") : "doc.txt"
        let document = "\(Self.seen)/\(path)"
        if way == .tunnelled {
          #expect(try bob.versions("\(Self.seen)/draft/sub/doc.txt").map(\.number) == [2, 3, 4])
          #expect(try bob.versions(document).map(\.number) == [1])
        } else {
          #expect(try bob.versions(document).map(\.number) == [2, 3])
          expect(.notFound) { try bob.library.readVersion(bob.path(document), number: 1) { _ in } }
          expect(.notFound) { _ = try bob.library.restore(bob.path(document), version: 1) }
        }
        #expect(try bob.library.deleted(bob.name.handle, below: nil).map(\.path) == [])
        let folder = document.split(separator: "/").dropLast().joined(separator: "/")
        let names = try bob.library.versionFolders(of: bob.inode(folder), bob.caller).map {
          String(decoding: $0.name, as: UTF8.self)
        }
        #expect(!names.contains { $0.hasPrefix("gone") })
        expect(.notFound) { _ = try bob.library.recover(bob.path("\(folder)/gone.txt"), id: nil) { _ in } }
      }
      // What entered is found by its owner as ever.
      try people.as(.alice) { (alice) throws in
        #expect(try alice.library.deleted(alice.name.handle, below: nil).map(\.path).count == 1)
      }
    }
  }

  /// A folder with a history is shared, or moved into a share, after the clock was put back by ten years.
  @Test(arguments: [false, true], [false, true])
  func aClockThatWasPutBackUncoversNothing(_ isMoved: Bool, _ isOpenedAnew: Bool) throws {
    let people = try People()
    try people.as(.alice) { (alice) throws in
      for folder in [Self.team, "Documents/draft"] { try alice.mkdir(folder) }
      try people.share(Self.team, with: [(.bob, .readWrite)])
      for text in ["secret", "clean"] {
        people.clock.advance(60)
        try alice.save("Documents/draft/doc.txt", text)
      }
      try alice.save("Documents/draft/gone.txt", "gone")
      people.clock.advance(60)
      try alice.unlink("Documents/draft/gone.txt")
    }
    people.clock.advance(60)
    people.clock.advance(-10 * 365 * 86_400)
    var library = people.library
    if isOpenedAnew {
      // Many events hide those before them from the next process, to which one of these changes speaks.
      try people.as(.alice) { (alice) throws in
        for number in 0..<1100 { try alice.mkdir("Documents/\(number)") }
      }
      try library.close()
      library = try Library.open(LibraryLocation(path: people.fixture.path)) { people.clock.now }
    }
    let (alice, bob) = (
      Person(library: library, name: .alice, process: 0), Person(library: library, name: .bob, process: 0)
    )
    if isMoved {
      try alice.rename("Documents/draft", "\(Self.team)/draft")
    } else {
      _ = try bob.accept(alice.share("Documents/draft", with: [.bob], .readWrite).url)
    }
    people.clock.advance(1)
    let folder = isMoved ? "\(Self.seen)/draft" : "Shared/alice@example.com/draft"
    #expect(try bob.versions("\(folder)/doc.txt").map(\.number) == [2])
    #expect(try library.deleted(bob.name.handle, below: nil).map(\.path) == [])
    try bob.save("\(folder)/doc.txt", "three")
    #expect(try bob.versions("\(folder)/doc.txt").map(\.number) == [3])
    #expect(try library.check { _ in }.problems == [])
    try library.close()
    try FileManager.default.removeItem(atPath: people.fixture.folder)
  }

  /// How much lay in a deleted folder tells participants nothing of what was deleted there before they could see it.
  @Test func aDeletedFolderCountsWhatItsReaderCouldSee() throws {
    try People.story { people in
      try people.as(.alice) { (alice) throws in
        for folder in [Self.team, "\(Self.team)/sub"] { try alice.mkdir(folder) }
        for name in ["a", "b"] { try alice.save("\(Self.team)/sub/\(name)", name) }
        for name in ["a", "b"] { try alice.unlink("\(Self.team)/sub/\(name)") }
      }
      people.clock.advance(60)
      _ = try people.share(Self.team, with: [(.bob, .readWrite)])
      people.clock.advance(60)
      try people.as(.alice) { (alice) throws in
        try alice.save("\(Self.team)/sub/c", "c")
        try alice.unlink("\(Self.team)/sub/c")
        try alice.rmdir("\(Self.team)/sub")
      }
      func counts(_ person: Person) throws -> [Int] {
        try person.library.deletedTrees(person.name.handle, below: nil, limit: 10).trees.map(\.items)
      }
      #expect(try people.as(.bob, counts) == [1])
      #expect(try people.as(.alice, counts) == [3])
    }
  }

  /// A document that a program renamed away comes back to its name with the entry time that it had elsewhere.
  @Test func comingBackCarriesTheEntryTime() throws {
    try People.story { people in
      try people.as(.alice) { (alice) throws in
        for folder in [Self.team, "Documents/draft"] { try alice.mkdir(folder) }
        for text in ["one", "two"] {
          try alice.save("\(Self.team)/doc.txt", text)
          people.clock.advance(60)
        }
      }
      try people.share(Self.team, with: [(.bob, .readWrite)])
      people.clock.advance(60)
      try people.as(.alice) { (alice) throws in
        try alice.save("\(Self.team)/doc.txt", "three")
        people.clock.advance(60)
        try alice.rename("Documents/draft", "\(Self.team)/draft")
      }
      people.clock.advance(60)
      try people.as(.alice, process: getpid()) { (alice) throws in
        try alice.rename("\(Self.team)/doc.txt", "\(Self.team)/draft/doc.txt")
        #expect(try people.as(.bob) { try $0.versions("\(Self.seen)/draft/doc.txt").map(\.number) } == [3])
        people.clock.advance(1)
        try alice.save("\(Self.team)/doc.txt", "four")
      }
      #expect(try people.as(.bob) { try $0.versions("\(Self.seen)/doc.txt").map(\.number) } == [3, 4])
    }
  }

  /// How a document comes into a share while it is being written.
  enum Entry: CaseIterable { case shared, sharedWithFolder, moved, movedWithFolder, recovered }

  /// What was autosaved, or saved, and written over before the document entered is in no version that participants
  /// see.
  @Test(arguments: Entry.allCases, [true, false])
  func whatWasWrittenOverBeforeEntryStaysHidden(_ entry: Entry, _ isAutosaved: Bool) throws {
    try People.story { people in
      try people.as(.alice) { try $0.mkdir(Self.team) }
      let place = entry == .movedWithFolder ? "Documents/plans" : entry == .moved ? "Documents" : Self.team
      if entry == .movedWithFolder { try people.as(.alice) { try $0.mkdir(place) } }
      if entry == .moved || entry == .movedWithFolder { try people.share(Self.team, with: [(.bob, .readWrite)]) }
      people.clock.advance(60)
      let path = "\(place)/doc.txt"
      let handle = try people.as(.alice) { (alice) throws in
        if !isAutosaved {
          try alice.save(path, "secret")
          people.clock.advance(60)
        }
        let handle = try alice.open(path, O_RDWR | O_CREAT)
        if isAutosaved {
          try alice.write(handle, "secret")
          people.clock.advance(2)
          people.fixture.autosave()
        }
        try alice.write(handle, "public")
        return handle
      }
      var seen = "\(Self.seen)/doc.txt"
      switch entry {
      case .shared:
        try people.share(path, with: [(.bob, .readWrite)])
        seen = "Shared/alice@example.com/doc.txt"
      case .sharedWithFolder: try people.share(Self.team, with: [(.bob, .readWrite)])
      case .moved: try people.as(.alice) { try $0.rename(path, "\(Self.team)/doc.txt") }
      case .movedWithFolder:
        try people.as(.alice) { try $0.rename(place, "\(Self.team)/plans") }
        seen = "\(Self.seen)/plans/doc.txt"
      case .recovered:
        try people.as(.alice) { try $0.unlink(path) }
        people.clock.advance(60)
        try people.share(Self.team, with: [(.bob, .readWrite)])
        people.clock.advance(60)
        // A program goes on with what has no name.
        try people.as(.alice) { try $0.write(handle, "secret") }
        people.clock.advance(2)
        people.fixture.autosave()
        try people.as(.alice) { try $0.write(handle, "public") }
        _ = try people.as(.alice) { try $0.library.recover($0.path(path), id: nil) { _ in } }
      }
      func expectHidden() throws {
        try people.as(.bob) { (bob) throws in
          #expect(try bob.read(seen) == "public")
          let versions = try bob.versions(seen)
          #expect(!versions.isEmpty)
          for version in versions {
            var bytes: [UInt8] = []
            try bob.library.readVersion(bob.path(seen), number: version.number) { bytes += $0 }
            #expect(String(decoding: bytes, as: UTF8.self) == "public", "version \(version.number)")
          }
        }
      }
      try expectHidden()
      people.clock.advance(2)
      people.fixture.autosave()
      try people.as(.alice) { try $0.close(handle) }
      try expectHidden()
    }
  }

  /// Whatever is done, by whomever, no entry time falls, and no participant sees what was before something entered.
  @Test(arguments: 0..<8)
  func noEntryTimeFalls(_ round: Int) throws {
    var model = try EntryModel(random: SeededRandom())
    for _ in 0..<400 { try model.step() }
    try model.people.finish()
  }
}

/// Random actions of an owner and an editor in two shares and outside, and what must be so after each.
private struct EntryModel {
  private static let names = ["a.txt", "b.txt", "a.txt~", "new.tmp", "sub", "deep"]
  private static let folders = ["Documents/one", "Documents/two", "Documents/own"]

  /// What is known of an item.
  private struct Known {
    /// The share in which participants see it; nil for none.
    var share: Int64?
    /// Number of the version that was current when it entered.
    var first: Int64 = 0
    var isDeleted = false
    var current: Int64
    /// What participants saw of it when it left a share.
    var left: (share: Int64, first: Int64, current: Int64)?
  }

  private struct Stay: Hashable {
    let item: Int64
    let share: Int64
  }

  /// An item, living or deleted, as the library has it.
  private struct Found {
    let item: ItemFacts
    let share: Int64?
    let entry: Timestamp?
    let isDeleted: Bool

    struct ItemFacts {
      let id: Int64
      let uuid: String
      let version: Int64
    }
  }

  let people: People
  private var random: SeededRandom
  private var known: [Int64: Known] = [:]
  private var entries: [Stay: Timestamp] = [:]
  private var urls: [String: String] = [:]
  /// Where something is, as the owner finds it.
  private var paths: [String] = []
  private var actions: [String] = []

  init(random: SeededRandom) throws {
    self.random = random
    people = try People()
    try people.as(.alice) { (alice) throws in
      for folder in Self.folders {
        try alice.mkdir(folder)
        try alice.mkdir("\(folder)/sub")
      }
    }
    for folder in Self.folders.prefix(2) { urls[folder] = try people.share(folder, with: [(.bob, .readWrite)]) }
    try look()
  }

  // MARK: - Actions

  /// Does something, if it can be done, and looks at what came of it.
  mutating func step() throws {
    people.clock.advance(milliseconds: [1, 50, 1000, 20_000].randomElement(using: &random) ?? 1)
    let who: People.Name = Bool.random(using: &random) ? .alice : .bob
    let process: Int32 = [0, getpid(), 1].randomElement(using: &random) ?? 0
    let person = try people.as(who, process: process) { $0 }
    let (source, target) = (place(of: who, mustBe: 9), place(of: who, mustBe: 4))
    let choice = Int.random(in: 0..<20, using: &random)
    let text = "\(random.next())"
    let chance = Bool.random(using: &random)
    actions.append("\(who) \(process) \(choice) \(source) \(target)")
    do {
      switch choice {
      case 0..<4: try person.save(source, text)
      case 4..<9: try person.rename(source, target)
      case 9..<11: try person.exchange(source, target)
      case 11: try person.link(source, target)
      case 12..<14: try person.unlink(source)
      case 14: try person.rmdir(source)
      case 15: try person.mkdir(source)
      case 16:
        try person.save("\(source).new", text)
        try person.rename("\(source).new", source)
      case 17:
        let path = try person.path(source)
        if chance, let id = try person.library.deleted(person.name.handle, below: nil).first?.id {
          _ = try person.library.recover(path, id: id) { _ in }
        } else {
          _ = try person.library.recover(path, id: nil) { _ in }
        }
      case 18: try leave(process)
      default: try shareAnew(Self.folders[chance ? 0 : 1])
      }
    } catch is SheafError {
      // It cannot be done here.
    }
    try look()
  }

  /// A random place as someone finds it: in that many of ten cases one where something is, else one for something new.
  private mutating func place(of who: People.Name, mustBe often: Int) -> String {
    let tops = who == .bob ? Self.folders.prefix(2) : Self.folders[...]
    let there = paths.filter { path in tops.contains { path.hasPrefix($0 + "/") } }
    var path = there.randomElement(using: &random) ?? tops[0] + "/sub"
    if Int.random(in: 0..<10, using: &random) >= often {
      if Bool.random(using: &random) { path = tops.randomElement(using: &random) ?? tops[0] }
      let folder = path.hasSuffix(".txt") ? path.split(separator: "/").dropLast().joined(separator: "/") : path
      path = folder + "/" + (Self.names.randomElement(using: &random) ?? "")
    }
    return who == .bob ? path.replacing("Documents", with: "Shared/alice@example.com") : path
  }

  /// Bob removes an entry, as `rm -r` does, and joins again.
  private func leave(_ process: Int32) throws {
    try people.as(.bob, process: process) { (bob) throws in
      for name in try bob.names("Shared/alice@example.com/one") {
        try? bob.unlink("Shared/alice@example.com/one/\(name)")
      }
      try bob.removeEntry(.alice, "one")
      _ = try bob.accept(urls["Documents/one"] ?? "")
    }
  }

  private mutating func shareAnew(_ folder: String) throws {
    try people.as(.alice) { try $0.library.unshare($0.path(folder)) }
    try look()
    people.clock.advance(milliseconds: 1)
    urls[folder] = try people.share(folder, with: [(.bob, .readWrite)])
  }

  // MARK: - What must be so

  /// Compares the library with what is known, and notes what changed.
  private mutating func look() throws {
    let note: Comment = "\(random.note) \(actions.suffix(12).joined(separator: "\n"))"
    let (found, paths) = try self.found()
    self.paths = paths
    for thing in found {
      if let share = thing.share, let entry = thing.entry {
        let stay = Stay(item: thing.item.id, share: share)
        if let before = entries[stay] { #expect(entry >= before, note) }
        entries[stay] = entry
      }
      var state =
        known[thing.item.id] ?? Known(share: thing.share, isDeleted: thing.isDeleted, current: thing.item.version)
      let wasDeleted = state.isDeleted
      if thing.isDeleted, wasDeleted {
        // What was deleted outside is not seen because its folder enters.
        if thing.share != state.share { state.share = nil }
      } else if thing.share != state.share {
        if let left = state.left, left.share == thing.share, left.current == state.current {
          // A program that took its name away made it again, so that it was not away (rule 5 of ``Identity``). What it is
          // is what they saw.
          state.first = left.first
        } else {
          state.left = state.share.map { ($0, state.first, state.current) }
          state.first = state.current
        }
        state.share = thing.share
      }
      (state.isDeleted, state.current) = (thing.isDeleted, thing.item.version)
      known[thing.item.id] = state
    }
    try people.as(.bob) { (bob) throws in
      let byID = Dictionary(found.map { ($0.item.uuid, $0.item.id) }) { first, _ in first }
      for deleted in try bob.library.deleted(bob.name.handle, below: nil) {
        let state = try #require(known[byID[deleted.id] ?? 0])
        #expect(state.isDeleted && state.share != nil, "\(deleted.path) \(note)")
      }
      for thing in found where thing.share != nil {
        guard let state = known[thing.item.id] else { continue }
        guard let files = try? bob.library.versionFiles(of: thing.item.id, bob.caller) else { continue }
        if files.isEmpty { continue }
        #expect(state.share == thing.share, note)
        #expect(files.allSatisfy { $0.number >= state.first }, "item \(thing.item.id) from \(state.first) \(note)")
      }
    }
  }

  private func found() throws -> ([Found], paths: [String]) {
    let library = people.library
    return try library.locked {
      var found: [Found] = []
      var paths: [String] = []
      func add(_ ino: Int64, isDeleted: Bool) throws {
        let inode = try library.inode(ino)
        guard let item = try library.item(of: inode) else { return }
        let share = try library.share(of: inode)
        found.append(
          Found(
            item: .init(id: item.id, uuid: item.uuid.text, version: item.version), share: share?.row.item,
            entry: try share.map { try library.entryTime(of: inode, in: $0) }, isDeleted: isDeleted))
      }
      let account = try library.account(People.Name.alice.handle)
      var folders = [(ino: account.documents, path: "Documents")]
      while let folder = folders.popLast() {
        for entry in try library.read({ try $0.entries(folder.ino, after: 0, limit: 10_000) }) {
          let path = "\(folder.path)/\(String(decoding: entry.name, as: UTF8.self))"
          paths.append(path)
          try add(entry.ino, isDeleted: false)
          if try library.inode(entry.ino).isFolder { folders.append((entry.ino, path)) }
        }
      }
      for deleted in try library.read({ try $0.deleted(before: nil, limit: 100_000) }) where deleted.owner == account.id
      {
        try add(deleted.row.ino, isDeleted: true)
      }
      return (found, paths)
    }
  }
}
