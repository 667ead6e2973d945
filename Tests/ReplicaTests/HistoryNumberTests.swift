import ConformanceKit
import SheafReplica
import SheafWire
import Testing

@testable import SheafLibrary

/// Which versions of a document get other numbers, so that all machines show the hub's.
@Suite struct HistoryNumberTests {
  private static let ids = (0..<40).map { _ in WireID() }

  /// - Parameters:
  ///   - local: For each number here the version; those that the hub does not have yet are in `unsent`.
  ///   - gone: Those of which nothing but the id is here.
  private func moved(
    _ local: [Int64: Int], unsent: [Int] = [], gone: [Int64: Int] = [:], hub: [Int64: Int]
  ) -> [Int64: Int] {
    var versions = ReplicaVersions()
    for (number, index) in local {
      versions.ids[number] = Self.ids[index]
      versions.numbers[Self.ids[index]] = number
    }
    versions.unsent = unsent.map { LocalVersion(id: Self.ids[$0], base: nil, cause: .save, time: 0) }
    let list = hub.sorted { $0.key < $1.key }.map { number, index in
      ItemVersion(id: Self.ids[index], number: number, base: nil, cause: .save, time: 0, arrived: 0, size: 1)
    }
    let moves = Library.moves(versions, VersionList(versions: list), gone: gone.mapValues { Self.ids[$0] })
    var moved: [Int64: Int] = [:]
    for (number, index) in local.merging(gone, uniquingKeysWith: { own, _ in own }) {
      moved[moves[number] ?? number] = index
    }
    #expect(moved.count == local.count + gone.count, "two have one number")
    return moved
  }

  @Test func whatTheHubHasHasItsNumbers() {
    // Nothing to do.
    #expect(moved([1: 0, 2: 1], hub: [1: 0, 2: 1]) == [1: 0, 2: 1])
    // Of two that were made at once, the other machine's came first.
    #expect(moved([3: 0, 4: 1, 6: 3], hub: [3: 0, 4: 2, 5: 1, 6: 3]) == [3: 0, 5: 1, 6: 3])
    // Two swap.
    #expect(moved([1: 0, 2: 1], hub: [1: 1, 2: 0]) == [2: 0, 1: 1])
    // Thinned before it was sent.
    #expect(moved([1: 0, 7: 1, 20: 2], hub: [1: 0, 2: 1, 3: 2]) == [1: 0, 2: 1, 3: 2])
  }

  @Test func whatTheHubDoesNotHaveMakesWay() {
    // Not sent yet: after all others, in its order.
    #expect(moved([1: 0, 2: 1, 3: 2], unsent: [1, 2], hub: [1: 0, 2: 5]) == [1: 0, 3: 1, 4: 2])
    #expect(moved([1: 0, 2: 1, 3: 2], unsent: [2], hub: [1: 0, 2: 1]) == [1: 0, 2: 1, 3: 2])
    // The hub has forgotten it: it stays, unless its number is another one's.
    #expect(moved([1: 0, 2: 1, 3: 2], hub: [1: 0, 3: 2]) == [1: 0, 2: 1, 3: 2])
    #expect(moved([1: 0, 2: 1], hub: [1: 0, 2: 2]) == [1: 0, 3: 1])
  }

  /// What went beside, or was thinned, makes way like what the hub does not have, and before what may be based on it.
  @Test func whatIsGoneHasANumberOfItsOwn() {
    #expect(moved([1: 0, 3: 3], gone: [2: 1], hub: [1: 0, 2: 2, 3: 3]) == [1: 0, 3: 3, 4: 1])
    #expect(moved([1: 0, 3: 3], unsent: [3], gone: [2: 1], hub: [1: 0, 2: 2]) == [1: 0, 3: 1, 4: 3])
    #expect(moved([1: 0], gone: [2: 1], hub: [1: 0, 3: 2]) == [1: 0, 2: 1])
    #expect(moved([5: 0], gone: [2: 1], hub: [1: 1, 2: 0]) == [1: 1, 2: 0])
  }

  @Test func numbersAreNeverGivenTwice() {
    let seed = UInt64.random(in: 0 ... .max)
    var random = SeededRandom(seed: seed)
    for _ in 0..<500 {
      var hub: [Int64: Int] = [:]
      var local: [Int64: Int] = [:]
      let known = (0..<40).shuffled(using: &random)
      for index in known.prefix(20) { hub[Int64.random(in: 1...30, using: &random)] = index }
      for index in known.shuffled(using: &random).prefix(20) { local[Int64.random(in: 1...30, using: &random)] = index }
      let unsent = local.sorted { $0.key < $1.key }.map(\.value).filter { index in
        !hub.values.contains(index) && Bool.random(using: &random)
      }
      let result = moved(local, unsent: unsent, hub: hub)
      for (number, index) in hub {
        #expect(result[number].map { $0 == index } ?? !local.values.contains(index), "seed \(seed)")
      }
      let numbers = unsent.map { index in result.first { $0.value == index }?.key ?? 0 }
      #expect(numbers == numbers.sorted() && numbers.first ?? .max > hub.keys.max() ?? 0, "seed \(seed)")
    }
  }

  /// A list of the newest versions that lacks one with such a number here does not say which number the hub has for it:
  /// the whole list does.
  @Test func whatAListOfTheNewestLacksIsLookedUpInTheWholeList() throws {
    try LibraryStory.tell { story in
      for text in ["1", "2", "3"] {
        try story.laptop.save(text, at: "trip.md")
        try story.sync()
      }
      let id = try #require(try story.laptop.id("trip.md"))
      let (library, account) = (story.laptop.library, story.laptop.account)
      let newest = Array(story.hub.versions(of: id, after: 0).suffix(1))
      let due = DueHistory(item: id, told: 1, after: 1, isWhole: false, deleted: nil)
      #expect(try library.compareHistory(due, with: VersionList(versions: newest), of: account) == .anew)
      let next = try #require(try library.nextHistory(of: account, toldBefore: .max))
      #expect(next.item == id && next.listedAfter == 0)
      try story.sync()
      #expect(try story.laptop.history(of: id).values.map(\.number).sorted() == [1, 2, 3])
      #expect(try library.nextHistory(of: account, toldBefore: .max) == nil)
    }
  }
}
