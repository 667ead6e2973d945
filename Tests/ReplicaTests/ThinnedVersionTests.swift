import Foundation
import SheafModel
import SheafReplica
import SheafWire
import Testing

@testable import SheafLibrary

/// Versions that are thinned at a machine while others are based on them, and the hub is to know on which.
@Suite struct ThinnedVersionTests {
  /// No text that could be merged.
  private static let path = "data.json"

  /// A desktop of which a program has saved a document fifteen times in a row, so that the hub's current version and
  /// others are surplus with the next save.
  private func tell(_ body: (LibraryStory, LibraryMachine) throws -> Void) throws {
    try LibraryStory.tell { story in
      let desktop = story.desktop
      try story.laptop.save("0", at: Self.path)
      try story.sync()
      _ = try desktop.library.change(.init(rapidSaves: .thin))
      for number in 1...15 {
        try desktop.save("\(number)", at: Self.path, by: desktop.program)
        while try desktop.step(&story.hub, losesAnswer: false) {}
      }
      #expect(story.hub.texts.contains("15"))
      try body(story, desktop)
      try story.sync()
      #expect(story.paths == [Self.path])
      #expect(!(story.laptop.outcomes + desktop.outcomes).contains { $0.outcome == .beside || $0.outcome == .merged })
    }
  }

  private func texts(_ machine: LibraryMachine) throws -> Set<Int64> {
    let id = try #require(try machine.id(Self.path))
    return try machine.library.locked {
      let item = try #require(try machine.library.read { try $0.item(uuid: UUID(bytes: id.bytes)) })
      return Set(try machine.library.read { try $0.versionFacts(item.id) }.map(\.number))
    }
  }

  /// Without a network: neither the version that the hub has, nor the one that came after it, is here any more.
  @Test func whatWasNotSentYetIsBasedOnWhatTheHubHas() throws {
    try tell { story, desktop in
      let before = try texts(desktop)
      try desktop.save("16", at: Self.path, by: desktop.program)
      try desktop.save("17", at: Self.path, by: desktop.program)
      desktop.library.keepUp()
      desktop.library.keepUp()
      let numbers = try texts(desktop)
      #expect(numbers.count < before.count + 2 && numbers.count <= 13, "\(numbers.sorted())")
      try story.sync()
      #expect(try story.text(Self.path) == "17")
    }
  }

  /// The program saves again at each moment while the hub is asked, whose answer may be lost, and what it saved before is
  /// surplus then.
  @Test(arguments: 0..<8, [false, true]) func whatIsBeingSentStays(_ steps: Int, losesAnswer: Bool) throws {
    try tell { story, desktop in
      try desktop.save("16", at: Self.path, by: desktop.program)
      for _ in 0..<steps { _ = try desktop.step(&story.hub, losesAnswer: losesAnswer) }
      try desktop.save("17", at: Self.path, by: desktop.program)
      desktop.library.keepUp()
      desktop.library.keepUp()
      try story.sync()
      #expect(try story.text(Self.path) == "17")
    }
  }

  /// The hub's numbers are others than those that were surplus here.
  @Test func whatHasAnotherNumberIsThinnedOrStaysAsItWas() {
    var saves = RapidSaves()
    for number in Int64(1)...15 {
      saves.note(
        .init(
          item: 1, number: number, time: Timestamp(nanoseconds: number), author: 1,
          by: .init(process: 7, ancestors: [2], group: 2, session: 2),
          size: 1, event: 0), lives: { _ in true })
    }
    // 11 is gone, 12 has the number that 13 had, and 13 that of 11.
    saves.renumber(1, [12: 13, 13: 11, 14: 20, 15: 21])
    #expect(saves.takeSurplus(10, at: Timestamp(nanoseconds: 20)).map(\.number) == [13, 11, 20])
    #expect(saves.takeSurplus(10, at: Timestamp(nanoseconds: 20)).isEmpty && saves.isEmpty)
  }
}
