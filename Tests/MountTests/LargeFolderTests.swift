import Foundation
import Glibc
import MountKit
import Testing

/// Folders of 100,000 entries.
@Suite(.serialized) struct LargeFolderTests {
  private static let count = 100_000

  @Test func twoFoldersOfAHundredThousandEntries() throws {
    try withMount(limit: .seconds(1500)) { library in
      let clock = ContinuousClock()
      var costs: [String: Duration] = [:]
      for folder in ["one", "two"] {
        try #require(mkdir("\(library.documents)/\(folder)", 0o755) == 0)
        costs[folder] = clock.measure { create("\(library.documents)/\(folder)", 0..<Self.count) }
      }
      let small = "\(library.documents)/small"
      try #require(mkdir(small, 0o755) == 0)
      let inSmall = clock.measure { create(small, 0..<1000) }
      let inLarge = clock.measure { create("\(library.documents)/one", Self.count..<Self.count + 1000) }
      #expect(inLarge < inSmall * 4 + .seconds(1), "1000 more files took \(inLarge), in a small folder \(inSmall)")

      #expect(list("\(library.documents)/one") == Self.count + 1000)
      #expect(list("\(library.documents)/two") == Self.count)
      try library.shell("mv one/entry-77777 two/moved; test -e two/moved; test ! -e one/entry-77777; ls -f one | wc -l")
      try library.unmount()
      try library.mount()
      let listing = clock.measure { #expect(list("\(library.documents)/one") == Self.count + 999) }
      let removing = try clock.measure { try library.shell("rm -r two", limit: .seconds(900)) }
      #expect(list("\(library.documents)/one") == Self.count + 999)
      print("100,000 entries: made in \(costs), listed cold in \(listing), removed in \(removing)")
      try library.unmount()
      #expect(try library.check() == [])
    }
  }

  private func create(_ folder: String, _ numbers: Range<Int>) {
    for number in numbers {
      let file = open("\(folder)/entry-\(number)", O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0o644)
      guard file >= 0, close(file) == 0 else {
        Issue.record("creating entry-\(number) failed: \(errno)")
        return
      }
    }
  }

  /// How many different entries there are; records what is listed twice.
  private func list(_ folder: String) -> Int {
    guard let stream = opendir(folder) else {
      Issue.record("opening \(folder) failed: \(errno)")
      return -1
    }
    defer { closedir(stream) }
    var names: Set<String> = []
    while let entry = readdir(stream) {
      let name = withUnsafePointer(to: &entry.pointee.d_name) {
        $0.withMemoryRebound(to: CChar.self, capacity: 256) { String(cString: $0) }
      }
      if name != ".", name != "..", !names.insert(name).inserted { Issue.record("\(name) is listed twice") }
    }
    return names.count
  }
}
