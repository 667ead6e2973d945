import Foundation
import Testing

/// The rooms of `SheafLibrary`: the types that hold what the library has in memory, each with state of its own and a
/// narrow interface. Kept by reading the sources.
@Suite struct RoomTests {
  /// Which other rooms each room may name. A room that is not here has nothing to do with any other.
  static let neighbours: [String: Set<String>] = [
    "EventObservers": ["ShareBook"],
    "LinkedPlaces": ["Identity"],
    "TemporaryFiles": ["Identity"],
    "UnstoredAccessTimes": ["InodeTable"],
  ]

  /// Which folders use each room, by its property.
  static let users: [String: Set<String>] = [
    "accessTimes": ["Tree", "Upkeep"],
    "accountTable": ["Accounts", "Events", "Replicas", "Search", "Sharing", "Tree"],
    "chunks": ["Contents", "Editing", "Tree", "Upkeep"],
    "connectedAccounts": ["Events", "Replicas", "Sharing"],
    "departures": ["Sharing"],
    "doors": ["Doors", "Editing", "Sharing"],
    "eventObservers": ["Accounts", "Events", "Replicas"],
    "events": ["Events", "History", "Identity", "Replicas", "Sharing", "Tree", "Upkeep"],
    "files": ["Doors", "Editing", "Identity", "Replicas", "Sharing"],
    "holds": ["Upkeep"],
    "ignored": ["Tree"],
    "identity": ["Editing", "Events", "History", "Identity", "Replicas", "Sharing", "Tree", "Upkeep"],
    "inodes": [
      "Accounts", "Doors", "Editing", "Events", "History", "Identity", "Replicas", "Sharing", "Tree", "Upkeep",
    ],
    "latestTime": ["Events", "MakingChanges.swift", "Sharing"],
    "leftEntries": ["Sharing"],
    "linkedPlaces": ["Identity", "Tree"],
    "numbers": ["Accounts", "Contents", "Events", "History", "Identity", "Replicas", "Sharing", "Tree", "Upkeep"],
    "purged": ["History"],
    "rapidSaves": ["Events", "Replicas", "Upkeep"],
    "readings": ["Replicas", "Sharing"],
    "sessions": ["Editing", "Identity", "Replicas", "Sharing", "Tree", "Upkeep"],
    "shares": [
      "Accounts", "Doors", "Editing", "Events", "History", "Identity", "Replicas", "Search", "Sharing", "Tree",
    ],
    "shownEntries": ["Doors", "Sharing"],
    "temporaryFiles": ["Sharing"],
    "transferWatch": ["Doors", "Sharing", "Upkeep"],
    "versionReaders": ["History", "Upkeep"],
  ]

  struct SourceFile {
    let path: String
    let lines: [Substring]

    /// The lines without comments.
    var code: [Substring] {
      lines.map { line in line.firstRange(of: "//").map { line[..<$0.lowerBound] } ?? line }
    }
  }

  static func library() throws -> [SourceFile] {
    try ArchitectureTests.files("Sources/SheafLibrary").map { SourceFile(path: $0.path, lines: $0.lines) }
  }

  /// The types of the properties of `Library` that change, by property.
  static func rooms() throws -> [String: String] {
    let library = try #require(try library().first { $0.path.hasSuffix("/Library.swift") })
    let form = /^  (?:package )?(?:private(?:\(set\))? )?var (\w+)(?:: (\w+)\??$| = (\w+)\()/
    var rooms: [String: String] = [:]
    for line in library.code {
      if let match = line.firstMatch(of: form), let type = match.2 ?? match.3 { rooms[String(match.1)] = String(type) }
    }
    return rooms
  }

  /// The file that is named after a room, and says nothing else.
  static func file(of room: String) throws -> SourceFile {
    try #require(try library().first { $0.path.hasSuffix("/\(room).swift") }, "no file is named after \(room)")
  }

  @Test func everythingThatTheLibraryHoldsIsARoom() throws {
    let library = try #require(try Self.library().first { $0.path.hasSuffix("/Library.swift") })
    let rooms = try Self.rooms()
    #expect(rooms.count >= 10, "the rooms were not found")
    let stored = /^  (?:package )?(?:private(?:\(set\))? )?var (\w+)[^{]*$/
    for line in library.code {
      guard let name = line.firstMatch(of: stored).map({ String($0.1) }) else { continue }
      #expect(rooms[name] != nil, "\(name) of Library is no room")
    }
    for room in rooms.values { _ = try Self.file(of: room) }
  }

  /// Nobody reaches into a room but by its functions.
  @Test func theStateOfARoomIsItsOwn() throws {
    let stored = /^ {2,}(?:package |internal )?var (\w+)\b[^{]*$/
    for room in try Self.rooms().values {
      let file = try Self.file(of: room)
      var isRoom = false
      for (number, line) in file.code.enumerated() {
        // Values that a room gives out are in braces of their own.
        if line.contains("struct \(room) ") || line.contains("final class \(room) ") { isRoom = true }
        if line == "}" { isRoom = false }
        guard isRoom, line.hasPrefix("  "), !line.hasPrefix("    ") else { continue }
        #expect(line.firstMatch(of: stored) == nil, "\(file.path):\(number + 1): \(line)")
      }
    }
  }

  /// What spans rooms is a function of `Library`, which names them; a room never calls back.
  @Test func aRoomKnowsOfNoLibrary() throws {
    for room in try Self.rooms().values {
      let file = try Self.file(of: room)
      for (number, line) in file.code.enumerated() where line.contains(/\bLibrary\b/) {
        Issue.record("\(file.path):\(number + 1): \(line)")
      }
    }
  }

  @Test func aRoomKnowsItsNeighboursAlone() throws {
    let rooms = Set(try Self.rooms().values)
    for room in rooms {
      let file = try Self.file(of: room)
      for other in rooms.subtracting(Self.neighbours[room] ?? []) where other != room {
        let name = try Regex(#"\b\#(other)\b"#)
        for (number, line) in file.code.enumerated() where line.firstMatch(of: name) != nil {
          Issue.record("\(file.path):\(number + 1) names \(other), which \(room) must not: \(line)")
        }
      }
    }
    #expect(rooms.isSuperset(of: Self.neighbours.keys), "a room that is none any more is named in the table")
  }

  /// Whoever reads a folder knows which state its functions may touch.
  @Test func aRoomIsUsedByWhoMay() throws {
    let rooms = Set(try Self.rooms().keys)
    #expect(rooms == Set(Self.users.keys), "the table names other rooms than there are")
    for file in try Self.library() where file.lines.contains(where: { $0.hasPrefix("extension Library") }) {
      let folder = String(file.path.split(separator: "/")[2])
      for room in rooms where !(Self.users[room]?.contains(folder) ?? false) {
        // Where something else has the name, it tells nothing.
        let another = try Regex(#"\b(let|var) \(?(\w+, )*\#(room)\b|\b\#(room):|for \#(room) in"#)
        if file.code.contains(where: { $0.firstMatch(of: another) != nil }) { continue }
        let use = try Regex(#"(^|[^\w.`"])(self\.)?\#(room)(\.|\[|\)| \}|$)"#)
        for (number, line) in file.code.enumerated() where line.firstMatch(of: use) != nil {
          Issue.record("\(file.path):\(number + 1) uses \(room): \(line)")
        }
      }
    }
  }

  /// The code of a file that belongs to `Library`.
  private static func libraryCode(_ file: SourceFile) -> [Substring] {
    var isLibrary = false
    return file.code.filter { line in
      if line.hasPrefix("extension Library") { isLibrary = true }
      defer { if line == "}" { isLibrary = false } }
      return isLibrary
    }
  }

  /// Whoever reads a file knows which state its functions touch themselves: a line before the extension names the rooms.
  @Test func aFileNamesTheRoomsThatItUses() throws {
    var uses: [(type: String, form: Regex<AnyRegexOutput>)] = []
    for (property, type) in try Self.rooms() {
      let room = try Self.file(of: type)
      let members = Set(
        room.code.flatMap { line in line.matches(of: /\b(?:func|var|let) (\w+)/).map { String($0.1) } })
      #expect(!members.isEmpty)
      // A local value of the name has other members, as a rule.
      var form = #"(^|[^\w.`"]|\bself\.|\blibrary\.)\#(property)(\.(\#(members.sorted().joined(separator: "|")))(?!\w)"#
      if room.code.contains(where: { $0.contains("subscript(") }) { form += #"|\["# }
      uses.append((type, try Regex(form + #"| = \#(type)\()"#)))
    }
    for file in try Self.library() where file.path.split(separator: "/").count > 3 {
      guard let start = file.lines.firstIndex(where: { $0.hasPrefix("extension Library") }) else { continue }
      let comment = file.lines[..<start].reversed().prefix { $0.hasPrefix("///") }.reversed().joined(separator: " ")
      let named = comment.firstRange(of: "/// Rooms: ").map { comment[$0.upperBound...] } ?? ""
      let rooms = Set(named.matches(of: /`(\w+)`/).map { String($0.1) })
      let code = Self.libraryCode(file)
      let used = Set(uses.filter { use in code.contains { $0.firstMatch(of: use.form) != nil } }.map(\.type))
      #expect(rooms == used, "\(file.path) uses \(used.sorted()), and names \(rooms.sorted())")
    }
  }

  /// Mounts know a library by inode and the API by path: neither knows it as a whole.
  @Test func eachDoorHasItsInterface() throws {
    for (module, other) in [("SheafMount", "PathInterface"), ("SheafService", "InodeInterface")] {
      let form = try Regex(#"\b\#(other)\b|[:(] ?Library\b(?!\.)"#)
      for (path, lines) in try ArchitectureTests.files("Sources/\(module)") {
        for (number, line) in SourceFile(path: path, lines: lines).code.enumerated()
        where line.firstMatch(of: form) != nil {
          Issue.record("\(path):\(number + 1): \(line)")
        }
      }
    }
  }
}
