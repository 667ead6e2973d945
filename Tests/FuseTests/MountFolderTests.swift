import CTestSystem
import Foundation
import Synchronization
import Testing

@testable import Fuse

/// Folders to mount on, with symbolic links of others on the way.
@Suite struct MountFolderTests {
  private static let isRoot = geteuid() == 0
  private static let stranger: UInt32 = 65_534

  private func withFolder(_ body: (String) throws -> Void) throws {
    var template = Array("/var/tmp/mount-folder-XXXXXX".utf8CString)
    try #require(mkdtemp(&template) != nil)
    let path = String(decoding: template.dropLast().map { UInt8(bitPattern: $0) }, as: UTF8.self)
    defer { try? FileManager.default.removeItem(atPath: path) }
    #expect(chmod(path, 0o755) == 0)
    try body(path)
  }

  private func make(_ path: String, owner: UInt32 = geteuid()) {
    #expect(mkdir(path, 0o755) == 0 && chown(path, owner, getegid()) == 0)
  }

  @Test func noLinkIsFollowed() throws {
    try withFolder { path in
      make("\(path)/folder")
      make("\(path)/folder/inner")
      #expect(symlink("folder", "\(path)/link") == 0)
      let inner = try MountFolder(at: "\(path)/folder/inner")
      #expect(inner.owner == geteuid())
      let loop = Errno(rawValue: ELOOP)
      #expect(throws: loop) { try MountFolder(at: "\(path)/link") }
      #expect(throws: loop) { try MountFolder(at: "\(path)/link/inner") }
      #expect(throws: Errno.noSuchFileOrDirectory) { try MountFolder(at: "\(path)/none") }
      #expect(throws: Errno.invalidArgument) { try MountFolder(at: "\(path)/folder/../folder") }
      #expect(FileManager.default.createFile(atPath: "\(path)/file", contents: nil))
      #expect(throws: Errno.notDirectory) { try MountFolder(at: "\(path)/file") }
    }
  }

  @Test func aFolderIsTheSameWhereverItGoes() throws {
    try withFolder { path in
      make("\(path)/folder")
      let folder = try MountFolder(at: "\(path)/folder")
      #expect(rename("\(path)/folder", "\(path)/moved") == 0)
      make("\(path)/folder")
      #expect(folder.currentPath == "\(path)/moved")
      #expect(FileManager.default.createFile(atPath: "\(path)/moved/file", contents: nil))
      let names = try FileManager.default.contentsOfDirectory(atPath: folder.ownPath)
      #expect(names == ["file"])
    }
  }

  @Test(.enabled(if: isRoot, "making folders of others needs root"))
  func onlyRootsLinksAreFollowed() throws {
    try withFolder { path in
      make("\(path)/place")
      make("\(path)/theirs", owner: Self.stranger)
      #expect(symlink("place", "\(path)/link") == 0)
      #expect(symlink("\(path)/place", "\(path)/theirs/link") == 0)
      #expect(symlink("\(path)/place", "\(path)/given") == 0 && lchown("\(path)/given", Self.stranger, 0) == 0)
      func following(_ name: String) -> String { MountFolder.following(rootsLinksIn: "\(path)/\(name)") }
      #expect(following("link/x") == "\(path)/place/x")
      #expect(following("link/../link/./x") == "\(path)/place/x")
      #expect(following("theirs/link/x") == "\(path)/theirs/link/x")
      #expect(following("given/x") == "\(path)/given/x")
      #expect(symlink("loop", "\(path)/loop") == 0)
      #expect(following("loop/x") == "\(path)/loop/x")
      func roots() throws -> [Bool] {
        try ["/place", "/theirs/roots", "/theirs"].map { name in
          let folder = try MountFolder(at: path + name)
          return folder.isRoots
        }
      }
      make("\(path)/theirs/roots")
      let before = try roots()
      #expect(before == [true, false, false])
      #expect(chmod(path, 0o777) == 0)
      let after = try roots()
      #expect(after == [false, false, false])
    }
  }

  @Test(.enabled(if: isRoot, "acting as another user needs root"))
  func aFolderIsMadeWithItsOwnersRights() throws {
    try withFolder { path in
      make("\(path)/theirs", owner: Self.stranger)
      try MountFolder.make(at: "\(path)/theirs/new", user: Self.stranger, group: Self.stranger)
      var status = stat()
      #expect(lstat("\(path)/theirs/new", &status) == 0)
      #expect(status.st_uid == Self.stranger && status.st_gid == Self.stranger && status.st_mode & 0o777 == 0o700)
      #expect(throws: Errno.permissionDenied) {
        try MountFolder.make(at: "\(path)/new", user: Self.stranger, group: Self.stranger)
      }
      #expect(symlink(path, "\(path)/theirs/link") == 0)
      #expect(throws: Errno.fileExists) {
        try MountFolder.make(at: "\(path)/theirs/link", user: Self.stranger, group: Self.stranger)
      }
      #expect(throws: Errno(rawValue: ELOOP)) {
        try MountFolder.make(at: "\(path)/theirs/link/new", user: Self.stranger, group: Self.stranger)
      }
      // This thread is root again.
      make("\(path)/roots")
    }
  }

  @Test(.enabled(if: isRoot, "acting as another user needs root"))
  func aFolderIsMadeWithNoneOfRootsGroups() throws {
    try withFolder { path in
      make("\(path)/group")
      #expect(chown("\(path)/group", 0, 4_242) == 0 && chmod("\(path)/group", 0o770) == 0)
      let done = DispatchSemaphore(value: 0)
      let outcome = Mutex<(failure: Errno?, groups: [gid_t])>((nil, []))
      // The thread ends with its groups.
      let thread = Thread {
        var (failure, groups): (Errno?, [gid_t]) = (nil, [0, 0])
        if sheaf_test_set_groups([4_242], 1) == 0 {
          do throws(Errno) {
            try MountFolder.make(at: "\(path)/group/new", user: Self.stranger, group: Self.stranger)
          } catch {
            failure = error
          }
        }
        let count = getgroups(2, &groups)
        let found = (failure, Array(groups.prefix(Int(max(0, count)))))
        outcome.withLock { $0 = found }
        done.signal()
      }
      thread.start()
      done.wait()
      let (failure, groups) = outcome.withLock { $0 }
      #expect(failure == .permissionDenied && groups == [4_242])
    }
  }
}
