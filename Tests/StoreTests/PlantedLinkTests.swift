import Foundation
import GRDB
import Glibc
import SheafModel
import Testing

@testable import SheafStore

/// What whoever owns the folder of a library puts where its files are expected, to lead a process of root's elsewhere.
@Suite struct PlantedLinkTests {
  private static let stranger: uid_t = 65_534

  /// A library, and a file elsewhere that nothing may touch.
  private func withLibrary(_ body: (_ path: String, _ elsewhere: String) throws -> Void) throws {
    try withFolder { folder in
      let path = folder + "/library.sqlite"
      try Store(path: path, lockPath: path + "-lock").close()
      let elsewhere = folder + "/elsewhere"
      #expect(FileManager.default.createFile(atPath: elsewhere, contents: Data("secret".utf8)))
      #expect(chmod(elsewhere, 0o640) == 0)
      if geteuid() == 0 { #expect(chown(path, Self.stranger, Self.stranger) == 0) }
      try body(path, elsewhere)
      var status = stat()
      #expect(lstat(elsewhere, &status) == 0 && status.st_uid == geteuid() && status.st_mode & 0o777 == 0o640)
      #expect(try String(contentsOfFile: elsewhere, encoding: .utf8) == "secret")
    }
  }

  @Test(arguments: ["-lock", "-changes", "-working", "-reserve"]) func noLinkBesideALibraryIsFollowed(
    _ suffix: String
  ) throws {
    try withLibrary { path, elsewhere in
      unlink(path + suffix)
      #expect(symlink(elsewhere, path + suffix) == 0)
      if let store = try? Store(path: path, lockPath: path + "-lock") {
        // It is opened where there is something to write.
        if suffix == "-working" {
          #expect(throws: (any Error).self) { try [UInt8(1)].withUnsafeBytes { try store.working.area().append($0) } }
        }
        try? store.close()
      }
      unlink(path + suffix)
      #expect(symlink(elsewhere + "-new", path + suffix) == 0)
      try? Store(path: path, lockPath: path + "-lock").close()
      #expect(access(elsewhere + "-new", F_OK) != 0)
    }
  }

  /// It makes a file anew that somebody took away after it was made for it.
  @Test func whatSQLiteMakesItselfIsForItsUserAlone() throws {
    try withFolder { folder in
      #expect(SQLiteFiles.areGuarded)
      let path = folder + "/new.sqlite"
      try DatabaseQueue(path: path).write { try $0.execute(sql: "CREATE TABLE secret (text)") }
      var status = stat()
      #expect(lstat(path, &status) == 0 && status.st_mode & 0o777 == 0o600)
    }
  }

  /// Whoever can change the folder of a backup puts another file in the place of the one that is written.
  @Test(arguments: [false, true]) func aBackupIsWrittenToTheFileThatWasMadeForIt(_ isLink: Bool) throws {
    try withLibrary { path, elsewhere in
      let store = try Store(path: path, lockPath: path + "-lock")
      try store.write(.create) { try $0.setSetting("secret", "value") }
      let copy = path + "-copy"
      for suffix in ["-journal", "-wal", "-shm"] { #expect(symlink(elsewhere, copy + ".sheaf-part" + suffix) == 0) }
      var isSwapped = false
      #expect {
        try store.backup(to: copy) { _ in
          guard !isSwapped else { return }
          isSwapped = true
          rename(copy + ".sheaf-part", copy + "-aside")
          if isLink {
            symlink(elsewhere, copy + ".sheaf-part")
          } else {
            try? Data("mine".utf8).write(to: URL(fileURLWithPath: copy + ".sheaf-part"))
          }
        }
      } throws: {
        ($0 as? SheafError)?.kind == .busy
      }
      #expect(isSwapped && access(copy, F_OK) != 0)
      if !isLink { #expect(try String(contentsOfFile: copy + ".sheaf-part", encoding: .utf8) == "mine") }
      // What was made for it is whole.
      let queue = try DatabaseQueue(path: copy + "-aside")
      let value = try queue.read { try String.fetchOne($0, sql: "SELECT value FROM settings WHERE key = 'secret'") }
      #expect(value == "value")
      try queue.close()
      try store.close()
    }
  }

  /// The folder may be moved away, too, and a link put in its place.
  @Test func aBackupStaysInTheFolderThatWasOpened() throws {
    try withLibrary { path, _ in
      try withFolder { folder in
        let store = try Store(path: path, lockPath: path + "-lock")
        let place = folder + "/place"
        for name in [place, folder + "/elsewhere"] { #expect(mkdir(name, 0o700) == 0) }
        var isSwapped = false
        try store.backup(to: place + "/copy") { _ in
          guard !isSwapped else { return }
          isSwapped = true
          rename(place, place + "-moved")
          symlink(folder + "/elsewhere", place)
        }
        #expect(try FileManager.default.contentsOfDirectory(atPath: folder + "/elsewhere") == [])
        #expect(try FileManager.default.contentsOfDirectory(atPath: place + "-moved") == ["copy"])
        let copy = try Store(path: place + "-moved/copy", lockPath: place + "-moved/copy-lock")
        #expect(try copy.integrityProblems() == [])
        try copy.close()
        if geteuid() == 0 {
          #expect { try store.backup(to: place + "/copy") { _ in } } throws: {
            "\($0)".contains("\(place): is a symbolic link")
          }
        }
        try store.close()
      }
    }
  }

  /// SQLite itself opens nothing by a link, and waits for no fifo, whenever that came there.
  @Test(arguments: ["-journal", "-wal", "-shm"]) func sqliteOpensNothingThatWasPutBesideALibrary(_ suffix: String)
    throws
  {
    #expect(SQLiteFiles.areGuarded)
    // A library that is open has a log, with its index.
    let statements = "PRAGMA journal_mode = WAL; SELECT 1 FROM items"
    try withLibrary { path, elsewhere in
      unlink(path + suffix)
      #expect(mkfifo(path + suffix, 0o666) == 0)
      #expect(throws: (any Error).self) {
        try DatabaseQueue(path: path).writeWithoutTransaction { try $0.execute(sql: statements) }
      }
      unlink(path + suffix)
      #expect(symlink(elsewhere, path + suffix) == 0)
      #expect(throws: (any Error).self) {
        try DatabaseQueue(path: path).writeWithoutTransaction { try $0.execute(sql: statements) }
      }
    }
  }

  /// None of the ways to a library's own file goes by a link, whichever of them it is that finds one.
  @Test func noLinkInPlaceOfALibraryIsFollowed() throws {
    try withLibrary { path, elsewhere in
      try withFolder { folder in
        let other = folder + "/other.sqlite"
        try Store(path: other, lockPath: other + "-lock").close()
        #expect(unlink(path) == 0 && symlink(other, path) == 0)
        #expect(throws: SheafError.self) { try LibraryFolder.makeFile(at: path) }
        #expect(throws: SheafError.self) { try LibraryFolder.checkHeader(of: path) }
        #expect(throws: (any Error).self) { try Connection(path: path) }
        var configuration = Configuration()
        configuration.refuseLink(at: path)
        #expect(throws: SheafError.self) { try DatabaseQueue(path: path, configuration: configuration) }
        #expect(throws: SheafError.self) { try Store(path: path, lockPath: path + "-lock") }
        #expect(unlink(path) == 0 && symlink(elsewhere, path) == 0)
        #expect(throws: SheafError.self) { try Store(path: path, lockPath: path + "-lock") }
      }
    }
  }

  @Test(arguments: ["", "-lock", "-changes", "-journal", "-wal", "-shm"]) func noFifoIsWaitedFor(_ suffix: String)
    throws
  {
    try withLibrary { path, _ in
      unlink(path + suffix)
      #expect(mkfifo(path + suffix, 0o666) == 0)
      #expect { try Store(path: path, lockPath: path + "-lock") } throws: { "\($0)".contains(path + suffix) }
    }
  }

  /// A library of root's is none of those to which a user's link may lead root.
  @Test(.enabled(if: geteuid() == 0)) func noLinkOnTheWayToALibraryIsFollowed() throws {
    try withFolder { folder in
      let (home, roots) = (folder + "/home", folder + "/roots")
      #expect(mkdir(home, 0o755) == 0 && mkdir(roots, 0o700) == 0)
      try Store(path: roots + "/library.sqlite", lockPath: roots + "/library.sqlite-lock").close()
      #expect(symlink(roots, home + "/link") == 0 && chown(home, Self.stranger, Self.stranger) == 0)
      let path = home + "/link/library.sqlite"
      #expect {
        try Store(path: path, lockPath: path + "-lock").close()
      } throws: {
        "\($0)".contains("\(home)/link") && "\($0)".contains("is a symbolic link")
      }
    }
  }

  /// Somebody whose library root has open puts a link in place of its folder: root reaches there what they reach
  /// themselves.
  @Test(.enabled(if: geteuid() == 0)) func noFolderInPlaceOfALibrarysIsEntered() throws {
    try withFolder { folder in
      #expect(chmod(folder, 0o755) == 0)
      let (home, secret) = (folder + "/home", folder + "/secret")
      let path = home + "/library.sqlite"
      #expect(mkdir(home, 0o755) == 0 && mkdir(secret, 0o700) == 0)
      // A library of root's of the same name.
      let roots = URL(fileURLWithPath: secret + "/library.sqlite")
      try Store(path: roots.path, lockPath: roots.path + "-lock").close()
      try Store(path: path, lockPath: path + "-lock").close()
      for name in try FileManager.default.contentsOfDirectory(atPath: home) {
        #expect(chown(home + "/" + name, Self.stranger, Self.stranger) == 0)
      }
      #expect(chown(home, Self.stranger, Self.stranger) == 0)
      let store = try Store(path: path, lockPath: path + "-lock")
      // What root makes is the owner's.
      var status = stat()
      #expect(lstat(path + "-wal", &status) == 0 && status.st_uid == Self.stranger)
      #expect(rename(home, folder + "/aside") == 0 && symlink(secret, home) == 0)
      for suffix in ["-reserve", "-wal", "-lock"] {
        #expect(
          FileManager.default.createFile(atPath: secret + "/library.sqlite" + suffix, contents: Data("secret".utf8)))
      }
      let (names, bytes) = (try FileManager.default.contentsOfDirectory(atPath: secret), try Data(contentsOf: roots))
      try store.reserve.release()
      store.reserve.establish()
      #expect(throws: (any Error).self) { try [UInt8(1)].withUnsafeBytes { try store.working.area().append($0) } }
      #expect(throws: (any Error).self) { try Connection(path: path) }
      LibraryFolder.remove(path + "-lock")
      #expect(LibraryLock.owner(path: path + "-lock") == nil)
      for suffix in ["-reserve", "-wal", "-lock"] {
        #expect(try String(contentsOfFile: secret + "/library.sqlite" + suffix, encoding: .utf8) == "secret")
      }
      // SQLite does not resolve the link either.
      #expect(throws: (any Error).self) {
        try DatabaseQueue(path: path).read { try $0.execute(sql: "SELECT 1 FROM items") }
      }
      #expect(try FileManager.default.contentsOfDirectory(atPath: secret) == names)
      // Nor by whoever opens the library at such a moment.
      #expect(throws: SheafError.self) { try Store(path: path, lockPath: path + "-lock") }
      for suffix in ["-reserve", "-wal", "-lock"] {
        #expect(try String(contentsOfFile: secret + "/library.sqlite" + suffix, encoding: .utf8) == "secret")
      }
      #expect(try Data(contentsOf: roots) == bytes)
      #expect(unlink(home) == 0 && rename(folder + "/aside", home) == 0)
      try store.close()
    }
  }
}
