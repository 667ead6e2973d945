import Glibc
import SheafModel
import Testing

@testable import SheafLibrary

/// Programs that write a little and sync, all day long, as databases do: one session, one version.
struct CommittedPagesTests {
  /// Pieces of any length, anywhere: chunks that are cut into and laid over again and again.
  @Test func whatIsWrittenOverTakesNoRoom() throws {
    var random = SeededRandom()
    let fixture = try LibraryFixture()
    var contents = (0..<262_144).map { _ in UInt8.random(in: 0...255, using: &random) }
    try fixture.save("d.db", contents)
    let handle = try fixture.open("d.db")
    var most = 0
    for round in 1...400 {
      let count = Int.random(in: 1...8191, using: &random)
      let start = Int.random(in: 0...(contents.count - count), using: &random)
      let piece = (0..<count).map { _ in UInt8.random(in: 0...255, using: &random) }
      contents.replaceSubrange(start..<(start + count), with: piece)
      try fixture.write(handle, piece, at: Int64(start))
      if round % 7 == 0 { try fixture.library.fsync(fixture.ino("d.db")) } else { try fixture.library.flush(handle) }
      // Chunks of the first version, and those of the other one.
      if round % 40 == 0 { most = max(most, try fixture.chunkCount) }
    }
    #expect(try fixture.read(handle) == contents, random.note)
    try fixture.close(handle)
    #expect(try fixture.versions("d.db").count == 2)
    #expect(most < 200, "\(most) chunks, \(random.note)")
    // What is freed is just what nothing refers to.
    try fixture.expectSound()
    let kept = try fixture.chunkCount
    _ = try fixture.library.sweep()
    let left = try fixture.chunkCount
    #expect(kept - left < 20, "\(kept - left) of \(kept) were left, \(random.note)")
    #expect(try fixture.read("d.db") == contents)
    try fixture.finish()
  }
}
