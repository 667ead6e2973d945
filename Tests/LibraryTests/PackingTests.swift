import Foundation
import GRDB
import Glibc
import SheafModel
import SheafStore
import Testing

@testable import SheafLibrary

/// Old history in few bytes, and all of it still there.
struct PackingTests {
  /// A text of words, some of which change with each version.
  private struct Text {
    private var words: [String]

    init(_ count: Int, _ random: inout SeededRandom) {
      words = (0..<count).map { _ in String(UInt32.random(in: 0...999_999, using: &random), radix: 36) }
    }

    mutating func edit(_ random: inout SeededRandom) -> [UInt8] {
      for _ in 0..<3 {
        words[Int.random(in: 0..<words.count, using: &random)] = String(random.next(), radix: 36)
      }
      return Array(words.joined(separator: " ").utf8)
    }
  }

  private func contents(_ fixture: LibraryFixture, _ path: String, _ number: Int64) throws -> [UInt8] {
    var bytes: [UInt8] = []
    try fixture.library.readVersion(fixture.path(path), number: number) { bytes += $0 }
    return bytes
  }

  private func expect(
    _ versions: [[UInt8]], of path: String, in fixture: LibraryFixture, _ note: Comment,
    _ location: SourceLocation = #_sourceLocation
  ) throws {
    for (index, version) in versions.enumerated() {
      let isSame = try contents(fixture, path, Int64(index + 1)) == version
      #expect(isSame, "version \(index + 1) of \(path), \(note)", sourceLocation: location)
    }
    try fixture.expectSound(location)
  }

  private func storedBytes(_ fixture: LibraryFixture) throws -> Int64 { try fixture.library.counts().storedBytes }

  private func packs(_ fixture: LibraryFixture) throws -> [Pack] {
    try fixture.library.store.snapshot { transaction in
      var numbers: [Int64] = []
      try transaction.packs { id, _, _ in numbers.append(id) }
      return try numbers.compactMap { try transaction.pack($0) }
    }
  }

  @Test(arguments: [10, 2000, 30_000])
  func historyIsPackedAndStaysWhatItWas(_ words: Int) throws {
    var random = SeededRandom()
    let fixture = try LibraryFixture()
    var text = Text(words, &random)
    var versions: [[UInt8]] = []
    for round in 1...3 {
      for _ in 0..<20 {
        versions.append(text.edit(&random))
        try fixture.save("a", versions.last!)
      }
      let report = try fixture.library.compact { _ in }
      #expect(report.versionsPacked == (round == 1 ? 19 : 20), "round \(round), \(random.note)")
      try expect(versions, of: "a", in: fixture, random.note)
      // What came is in one pack with what was there.
      #expect(try packs(fixture).map(\.chunks.count) == [versions.count - 1])
      #expect(try fixture.library.compact { _ in }.versionsPacked == 0)
    }
    // Little more than what is current.
    #expect(try storedBytes(fixture) < Int64(versions[0].count) + 60 * 100, random.note)
    #expect(try fixture.read("a") == versions.last)
    try fixture.finish()
  }

  @Test func moreVersionsThanAPackHolds() throws {
    var random = SeededRandom()
    let fixture = try LibraryFixture()
    var text = Text(20, &random)
    var versions: [[UInt8]] = []
    for count in [Pack.limit + 10, 5, Pack.limit] {
      for _ in 0..<count {
        versions.append(text.edit(&random))
        try fixture.save("a", versions.last!)
      }
      _ = try fixture.library.compact { _ in }
      let packs = try packs(fixture)
      #expect(packs.allSatisfy { $0.chunks.count <= Pack.limit })
    }
    try expect(versions, of: "a", in: fixture, random.note)
    try fixture.finish()
  }

  @Test func versionsThatHaveNothingInCommonStayAsTheyAre() throws {
    var random = SeededRandom()
    let fixture = try LibraryFixture()
    let versions = (0..<5).map { _ in random.bytes(100_000) }
    for version in versions { try fixture.save("a", version) }
    #expect(try fixture.library.compact { _ in }.versionsPacked == 0)
    #expect(try packs(fixture).isEmpty)
    try expect(versions, of: "a", in: fixture, random.note)
    try fixture.finish()
  }

  /// A document that was cut short refers to the beginning of a chunk that an earlier version has whole.
  @Test func aVersionThatIsTheBeginningOfAnotherLeavesThatWhole() throws {
    var random = SeededRandom()
    let fixture = try LibraryFixture()
    var text = Text(3000, &random)
    let whole = text.edit(&random)
    try fixture.save("a", whole)
    try fixture.cutShort("a", to: 9000)
    let last = Array(whole.prefix(9000)) + Array(" and on".utf8)
    try fixture.save("a", last)
    for _ in 0..<2 {
      _ = try fixture.library.compact { _ in }
      try expect([whole, Array(whole.prefix(9000)), last], of: "a", in: fixture, random.note)
    }
    try fixture.finish()
  }

  @Test func aVersionThatIsCurrentAgainIsReadWithoutAPack() throws {
    var random = SeededRandom()
    let fixture = try LibraryFixture()
    var text = Text(20_000, &random)
    let versions = (0..<6).map { _ in text.edit(&random) }
    for version in versions { try fixture.save("a", version) }
    _ = try fixture.library.compact { _ in }
    _ = try fixture.library.restore(fixture.path("a"), version: 2)
    #expect(try fixture.library.restore(fixture.path("a"), version: 2) == nil, "equal contents made a version")
    #expect(try fixture.read("a") == versions[1])
    _ = try fixture.library.compact { _ in }
    let chunks =
      try fixture.library.locked { try fixture.library.inode(fixture.library.resolve(fixture.path("a")).ino) }
      .row.content?.chunks ?? []
    for chunk in chunks { #expect(try fixture.library.store.read { try $0.packPlace(chunk) } == nil) }
    try expect(versions + [versions[1]], of: "a", in: fixture, random.note)
    try fixture.finish()
  }

  @Test func whatIsPurgedIsNowhere() throws {
    var random = SeededRandom()
    let fixture = try LibraryFixture()
    var text = Text(3000, &random)
    var versions = (0..<10).map { _ in text.edit(&random) }
    let secret = Array("the secret sentence".utf8)
    versions[4] += secret
    for version in versions { try fixture.save("a", version) }
    _ = try fixture.library.compact { _ in }
    func holdsSecret() throws -> Bool {
      try packs(fixture).contains { pack in
        pack.deltas.contains { delta in Data(delta).range(of: Data(secret.prefix(16))) != nil }
      }
    }
    #expect(try holdsSecret())
    try fixture.library.purge(fixture.path("a"), version: 5)
    #expect(try !holdsSecret())
    for number in 1...10 where number != 5 {
      let isSame = try contents(fixture, "a", Int64(number)) == versions[number - 1]
      #expect(isSame, "version \(number), \(random.note)")
    }
    try fixture.expectSound()
    // The version from which others are made.
    try fixture.save("a", text.edit(&random))
    try fixture.library.purge(fixture.path("a"), version: 10)
    for number in 1...9 where number != 5 {
      let isSame = try contents(fixture, "a", Int64(number)) == versions[number - 1]
      #expect(isSame, "version \(number), \(random.note)")
    }
    try fixture.expectSound()
    try fixture.library.purge(fixture.path("a"), version: nil)
    #expect(try packs(fixture).isEmpty)
    #expect(try fixture.chunkCount == 0)
    try fixture.finish()
  }

  /// Somebody wrote that number into the file.
  @Test func noPackFollowsOneWithTheHighestNumber() throws {
    var random = SeededRandom()
    let fixture = try LibraryFixture()
    var text = Text(2000, &random)
    for name in ["a", "b"] {
      for _ in 0..<20 { try fixture.save(name, text.edit(&random)) }
      if name == "a" {
        _ = try fixture.library.compact { _ in }
        var configuration = Configuration()
        // The library may be about to commit.
        configuration.busyMode = .timeout(10)
        let queue = try DatabaseQueue(path: fixture.path, configuration: configuration)
        try queue.write { try $0.execute(sql: "UPDATE packs SET id = ?", arguments: [Int64.max]) }
        try queue.close()
      }
    }
    #expect { _ = try fixture.library.compact { _ in } } throws: { ($0 as? SheafError)?.kind == .corrupt }
  }

  @Test func aReaderGoesOnWhileItsVersionIsPacked() throws {
    var random = SeededRandom()
    let fixture = try LibraryFixture()
    var text = Text(100_000, &random)
    let versions = (0..<4).map { _ in text.edit(&random) }
    for version in versions { try fixture.save("a", version) }
    let item = try #require(
      try fixture.library.locked { try fixture.library.inode(fixture.library.resolve(fixture.path("a")).ino) }.row.item)
    let reader = try fixture.library.openVersion(of: item, number: 2, .library)
    _ = try fixture.library.compact { _ in }
    try fixture.library.purge(fixture.path("a"), version: 2)
    var bytes = [UInt8](repeating: 0, count: versions[1].count + 1)
    let count = try bytes.withUnsafeMutableBytes { buffer in
      var count = 0
      while true {
        let more = try fixture.library.read(
          reader, at: Int64(count), into: UnsafeMutableRawBufferPointer(rebasing: buffer[count...]))
        guard more > 0 else { return count }
        count += more
      }
    }
    #expect(Array(bytes.prefix(count)) == versions[1], random.note)
    try fixture.finish()
  }

  @Test func aDocumentThatIsBeingEditedWaits() throws {
    var random = SeededRandom()
    let fixture = try LibraryFixture()
    var text = Text(1000, &random)
    let versions = (0..<5).map { _ in text.edit(&random) }
    for version in versions { try fixture.save("a", version) }
    let handle = try fixture.open("a")
    try fixture.write(handle, Array("x".utf8))
    try fixture.library.fsync(fixture.ino("a"))
    #expect(try fixture.library.compact { _ in }.versionsPacked == 0)
    try fixture.write(handle, Array(versions[4].prefix(1)))
    try fixture.close(handle)
    // Back to what it was: no version came of it.
    #expect(try fixture.versions("a").count == 5)
    #expect(try fixture.library.compact { _ in }.versionsPacked == 4)
    try expect(versions, of: "a", in: fixture, random.note)
    try fixture.finish()
  }

  @Test func compressedContentsAreRead() throws {
    let fixture = try LibraryFixture()
    let bytes = (0..<2_000_000).map { UInt8(truncatingIfNeeded: $0 >> 8 ^ $0 >> 3) }
    try fixture.save("a", bytes)
    _ = try fixture.library.compact { _ in }
    #expect(try storedBytes(fixture) < 500_000)
    #expect(try fixture.read("a") == bytes)
    let handle = try fixture.open("a")
    try fixture.write(handle, Array("edited".utf8), at: 1_000_000)
    try fixture.close(handle)
    #expect(try fixture.read("a").prefix(1_000_000) == bytes.prefix(1_000_000))
    try fixture.finish()
  }

  /// A chunk from which a pack is made is a version of another document, too, that is packed in the same go.
  @Test func whatAPackIsMadeFromIsNotPacked() throws {
    var random = SeededRandom()
    let fixture = try LibraryFixture()
    var text = Text(300, &random)
    let first = [text.edit(&random), text.edit(&random), random.bytes(2000)]
    for version in first[..<2] { try fixture.save("a", version) }
    let second = [first[1], text.edit(&random)]
    try fixture.save("b", second[0])
    try fixture.save("a", first[2])
    try fixture.save("b", second[1])
    for _ in 0..<2 {
      _ = try fixture.library.compact { _ in }
      try expect(first, of: "a", in: fixture, random.note)
      try expect(second, of: "b", in: fixture, random.note)
    }
    try fixture.finish()
  }

  /// The latest of them no longer fits into a pack with those before it, of which there is one already.
  @Test(arguments: 28...31)
  func aPackThatIsFullLeavesTheBaseOfTheNext(_ later: Int) throws {
    var random = SeededRandom()
    let fixture = try LibraryFixture()
    let rest = random.bytes(17_000)
    var versions: [[UInt8]] = []
    for count in [41, later] {
      for _ in 0..<count {
        versions.append(random.bytes(15_000) + rest)
        try fixture.save("a", versions.last!)
      }
      _ = try fixture.library.compact { _ in }
    }
    try expect(versions, of: "a", in: fixture, random.note)
    #expect(try packs(fixture).reduce(0) { $0 + $1.chunks.count } >= versions.count - 2)
    try fixture.finish()
  }

  @Test func aBaseThatWasPackedIsTakenOutOfItsPack() throws {
    var random = SeededRandom()
    let fixture = try LibraryFixture()
    var text = Text(300, &random)
    let first = [text.edit(&random), text.edit(&random), random.bytes(2000)]
    for version in first { try fixture.save("a", version) }
    _ = try fixture.library.compact { _ in }
    let base = try #require(try packs(fixture).first?.base.chunks.first)
    // As libraries have it that were packed by an earlier Sheaf.
    let other = random.bytes(2000)
    try fixture.save("b", other)
    let ino = try fixture.ino("b")
    let current = try #require(try fixture.library.locked { try fixture.library.inode(ino).row.content?.chunks.first })
    try fixture.library.store.write(.pack) { transaction in
      let pack = Pack(
        id: try transaction.nextPack, base: .extents([Extent(chunk: current, length: 2000)]), chunks: [base],
        deltas: [try #require(Delta.encode(first[1], from: other))[...]])
      try transaction.set(pack, data: pack.encodedDeltas)
    }
    #expect(try fixture.library.check { _ in }.problems != [])
    _ = try fixture.library.compact { _ in }
    try expect(first, of: "a", in: fixture, random.note)
    try fixture.finish()
  }

  /// Everything that can happen to history, at random, while it is packed again and again.
  @Test func allOfHistoryThroughAnything() throws {
    var random = SeededRandom()
    let fixture = try LibraryFixture()
    var texts = [Text(30, &random), Text(3000, &random), Text(12_000, &random)]
    var model: [String: [Int64: [UInt8]]] = [:]
    for _ in 0..<250 {
      let index = Int.random(in: 0..<3, using: &random)
      let name = "document \(index)"
      let numbers = model[name]?.keys.sorted() ?? []
      switch Int.random(in: 0..<20, using: &random) {
      case 0..<12: try fixture.save(name, texts[index].edit(&random))
      case 12: try fixture.save(name, random.bytes(Int.random(in: 0...40_000, using: &random)))
      case 13:
        // The same again, as a document of its own has it, or an earlier time had.
        guard let source = model.values.randomElement(using: &random),
          let bytes = source.values.randomElement(using: &random)
        else { continue }
        try fixture.save(name, bytes)
      case 14 where !numbers.isEmpty:
        _ = try fixture.library.restore(fixture.path(name), version: numbers.randomElement(using: &random)!)
      case 15 where numbers.count > 1:
        let number = numbers.dropLast().randomElement(using: &random)!
        try fixture.library.purge(fixture.path(name), version: number)
        model[name]?[number] = nil
      case 16 where !numbers.isEmpty && Int.random(in: 0..<4, using: &random) == 0:
        try fixture.library.purge(fixture.path(name), version: nil)
        model[name] = nil
        continue
      default: _ = try fixture.library.compact { _ in }
      }
      guard try fixture.find(name) != nil, let last = try fixture.versions(name).last?.number else { continue }
      if model[name]?[last] == nil { model[name, default: [:]][last] = try fixture.read(name) }
    }
    for (name, versions) in model {
      #expect(try fixture.versions(name).map(\.number) == versions.keys.sorted(), random.note)
      for (number, bytes) in versions {
        let isSame = try contents(fixture, name, number) == bytes
        #expect(isSame, "version \(number) of \(name), \(random.note)")
      }
    }
    _ = try fixture.library.compact { _ in }
    for (name, versions) in model {
      for (number, bytes) in versions {
        let isSame = try contents(fixture, name, number) == bytes
        #expect(isSame, "version \(number) of \(name), \(random.note)")
      }
    }
    for name in model.keys { try fixture.library.purge(fixture.path(name), version: nil) }
    #expect(try fixture.chunkCount == 0, random.note)
    #expect(try packs(fixture).isEmpty, random.note)
    try fixture.finish()
  }
}
