import ConformanceKit
import Foundation
import Glibc
import SheafLibrary
import SheafModel
import Testing

@testable import SheafCommand

/// What a program removes is what it made, whatever has its name by then.
@Suite struct OwnFolderTests {
  private func withFolder(_ body: (String) throws -> Void) throws {
    var template = Array("/var/tmp/sheaf-own-XXXXXX".utf8CString)
    #expect(mkdtemp(&template) != nil)
    let folder = String(decoding: template.dropLast().map { UInt8(bitPattern: $0) }, as: UTF8.self)
    defer { try? FileManager.default.removeItem(atPath: folder) }
    try body(folder)
  }

  private func make(_ path: String) {
    #expect(FileManager.default.createFile(atPath: path, contents: Data("mine".utf8)))
  }

  @Test func aFolderGoesWithItsFiles() throws {
    try withFolder { folder in
      let own = try OwnFolder("own-", in: folder)
      make(own.path + "/file")
      own.remove()
      #expect(try FileManager.default.contentsOfDirectory(atPath: folder) == [])
    }
  }

  @Test(arguments: [false, true]) func nothingOfWhatTookItsPlaceIsRemoved(_ isLink: Bool) throws {
    try withFolder { folder in
      let own = try OwnFolder("own-", in: folder)
      make(own.path + "/file")
      #expect(mkdir(folder + "/other", 0o700) == 0)
      make(folder + "/other/kept")
      #expect(rename(own.path, folder + "/aside") == 0)
      let target = folder + "/other"
      #expect((isLink ? symlink(target, own.path) : rename(target, own.path)) == 0)
      own.remove()
      #expect(access(own.path + "/kept", F_OK) == 0)
      #expect(try FileManager.default.contentsOfDirectory(atPath: folder + "/aside") == [])
    }
  }

  @Test func onlyACopyOfALibraryIsRemovedAsOne() throws {
    try withFolder { folder in
      let cases: [(String, mode_t, Bool)] = [
        ("documents", 0o700, false), ("sheaf-readonly-abcdef", 0o755, false), ("sheaf-readonly-ghijkl", 0o700, true),
      ]
      for (name, mode, isOne) in cases {
        #expect(mkdir(folder + "/" + name, mode) == 0 && chmod(folder + "/" + name, mode) == 0)
        let copy = ReadOnlyCopy(at: LibraryLocation(path: "\(folder)/\(name)/library.sqlite"))
        #expect((copy != nil) == isOne, "\(name)")
      }
      // Another user's.
      let theirs = folder + "/sheaf-readonly-mnopqr"
      #expect(mkdir(theirs, 0o700) == 0)
      if geteuid() == 0 {
        #expect(chown(theirs, 1, 1) == 0)
        #expect(ReadOnlyCopy(at: LibraryLocation(path: theirs + "/library.sqlite")) == nil)
      }
      #expect(symlink(folder + "/documents", folder + "/sheaf-readonly-link") == 0)
      #expect(ReadOnlyCopy(at: LibraryLocation(path: folder + "/sheaf-readonly-link/library.sqlite")) == nil)
    }
  }

  @Test func aFileThatWasReplacedStays() throws {
    try withFolder { folder in
      let path = folder + "/file"
      let own = try OwnFile(path)
      #expect(rename(path, folder + "/aside") == 0)
      make(path)
      own.remove()
      #expect(access(path, F_OK) == 0)
      #expect { _ = try OwnFile(path) } throws: { ($0 as? SheafError)?.kind == .exists }
      let other = try OwnFile(folder + "/other")
      other.remove()
      #expect(access(folder + "/other", F_OK) != 0)
    }
  }
}
