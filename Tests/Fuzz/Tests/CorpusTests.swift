import Foundation
import FuzzDecoders
import Testing

/// What fuzzers found, and what real values look like, through every decoder.
@Suite struct CorpusTests {
  static let corpus = URL(fileURLWithPath: #filePath).deletingLastPathComponent().deletingLastPathComponent()
    .appendingPathComponent("Corpus")

  @Test(arguments: Decoder.all.map(\.name))
  func everyInputIsReadOrRefused(_ name: String) throws {
    let decoder = try #require(Decoder.all.first { $0.name == name })
    let folder = Self.corpus.appendingPathComponent(name)
    let files = try FileManager.default.contentsOfDirectory(atPath: folder.path).sorted()
    #expect(!files.isEmpty, "no corpus")
    for file in files {
      let bytes = [UInt8](try Data(contentsOf: folder.appendingPathComponent(file)))
      do {
        try decoder.check(bytes)
      } catch {
        Issue.record("\(name)/\(file): \(error)")
      }
    }
  }
}
