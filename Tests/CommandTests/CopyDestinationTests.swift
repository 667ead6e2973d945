import Foundation
import Glibc
import SheafModel
import Testing

@testable import SheafCommand

/// Where `send-copy` writes: where the person said, whatever somebody puts there a moment later.
@Suite struct CopyDestinationTests {
  private static let stranger: uid_t = 65_534

  private func withFolder(_ body: (String) async throws -> Void) async throws {
    var template = Array("/var/tmp/sheaf-copy-XXXXXX".utf8CString)
    try #require(mkdtemp(&template) != nil)
    let folder = String(decoding: template.dropLast().map { UInt8(bitPattern: $0) }, as: UTF8.self)
    defer { try? FileManager.default.removeItem(atPath: folder) }
    #expect(chmod(folder, 0o755) == 0)
    try await body(folder)
  }

  private func destination(_ path: String) throws -> CopyDestination {
    try CopyDestination(Array(path.utf8), named: Array("doc".utf8))
  }

  private func write(_ destination: CopyDestination) async throws {
    let facts = CopyFacts(mode: 0o644, mtime: Timestamp(seconds: 1))
    try await CopyPlace(destination).makeFile(facts) { #expect(Glibc.write($0, "text", 4) == 4) }
    withExtendedLifetime(destination) {}
  }

  /// Between the first look at the folder and the copy, its owner puts a link in its place.
  @Test(arguments: ["", "/new"]) func aLinkThatComesLaterLeadsNowhere(_ name: String) async throws {
    try await withFolder { folder in
      let (home, secret) = (folder + "/home", folder + "/secret")
      #expect(mkdir(home, 0o755) == 0 && mkdir(secret, 0o700) == 0)
      if geteuid() == 0 { #expect(chown(home, Self.stranger, Self.stranger) == 0) }
      let copy = try destination(home + name)
      #expect(rename(home, folder + "/aside") == 0 && symlink(secret, home) == 0)
      #expect(copy.folderPath == Array((folder + "/aside").utf8))
      try await write(copy)
      #expect(try FileManager.default.contentsOfDirectory(atPath: secret).isEmpty)
      let made = name.isEmpty ? "doc" : "new"
      #expect(try String(contentsOfFile: "\(folder)/aside/\(made)", encoding: .utf8) == "text")
      let tree = try destination(folder + "/aside/tree")
      #expect(rename(folder + "/aside", folder + "/again") == 0 && symlink(secret, folder + "/aside") == 0)
      close(try CopyPlace(tree).makeFolder())
      #expect(access(folder + "/again/tree", F_OK) == 0 && access(secret + "/tree", F_OK) != 0)
      withExtendedLifetime(tree) {}
    }
  }

  /// Root follows no link that somebody else made, and people do follow their own.
  @Test func aLinkIsFollowedByWhoMadeIt() async throws {
    try await withFolder { folder in
      let (home, place) = (folder + "/home", folder + "/place")
      #expect(mkdir(home, 0o755) == 0 && mkdir(place, 0o700) == 0 && symlink(place, home + "/link") == 0)
      if geteuid() == 0 {
        for path in [home, home + "/link"] { #expect(lchown(path, Self.stranger, Self.stranger) == 0) }
        for path in ["/link", "/link/new", "/link/sub/new"] {
          #expect(throws: SheafError.self) { try destination(home + path) }
        }
        #expect(try FileManager.default.contentsOfDirectory(atPath: place).isEmpty)
      } else {
        try await write(destination(home + "/link"))
        try await write(destination(home + "/link/new"))
        #expect(try FileManager.default.contentsOfDirectory(atPath: place).sorted() == ["doc", "new"])
      }
    }
  }

  @Test func aPlaceIsNamedInAnyForm() async throws {
    try await withFolder { folder in
      for path in ["a", "b/", "./c", "sub", "sub/", "sub/d", "sub/../e"] {
        if path == "sub" { #expect(mkdir(folder + "/sub", 0o755) == 0) }
        let place = try destination("\(folder)/\(path)")
        let isInside = ["sub", "sub/"].contains(path)
        #expect(
          place.path.readable.hasSuffix(isInside ? "/doc" : "/" + path.split(separator: "/").last!.description)
            || path == "b/")
        if path == "sub/" || path == "b/" { continue }
        try await write(place)
      }
      let made = try FileManager.default.subpathsOfDirectory(atPath: folder).sorted()
      #expect(made == ["a", "c", "e", "sub", "sub/d", "sub/doc"])
      // What is there is not written over, nor is a folder that is not there made.
      await #expect(throws: SheafError.self) { try await write(destination("\(folder)/a")) }
      #expect(throws: SheafError.self) { try destination("\(folder)/none/x") }
    }
  }
}
