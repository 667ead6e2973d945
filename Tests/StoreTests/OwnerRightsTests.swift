import CTestSystem
import Foundation
import Glibc
import SheafModel
import Synchronization
import Testing

@testable import SheafStore

/// What a thread of root's may do while it acts for the owner of a library. Each test takes rights from a thread of its
/// own, which ends with it.
@Suite(.enabled(if: geteuid() == 0, "acting as another user needs root")) struct OwnerRightsTests {
  private static let stranger: uid_t = 65_534
  /// A group of root's thread, which the stranger is not in.
  private static let rootsGroup: gid_t = 4_242
  /// CAP_SETGID and CAP_SETUID of <linux/capability.h>.
  private static let takingRights: [Int32] = [6, 7]

  /// Runs `body` with a library of the stranger's, in a folder that everybody may enter.
  private func withLibrary(_ body: (_ path: String) throws -> Void) throws {
    try withFolder { folder in
      try #require(chmod(folder, 0o755) == 0 && mkdir(folder + "/home", 0o755) == 0)
      let path = folder + "/home/library.sqlite"
      try Store(path: path, lockPath: path + "-lock").close()
      for name in try FileManager.default.contentsOfDirectory(atPath: folder + "/home") {
        try #require(chown(folder + "/home/" + name, Self.stranger, Self.stranger) == 0)
      }
      try #require(chown(folder + "/home", Self.stranger, Self.stranger) == 0)
      try body(path)
    }
  }

  /// What `body` returns on a thread of its own.
  private func onThread<Value: Sendable>(_ body: @escaping @Sendable () -> Value) -> Value {
    let value = Mutex<Value?>(nil)
    let done = DispatchSemaphore(value: 0)
    let thread = Thread {
      let found = body()
      value.withLock { $0 = found }
      done.signal()
    }
    thread.start()
    done.wait()
    return value.withLock { $0! }
  }

  /// The result of a system call, and its error where it fails.
  private struct Answer: Equatable {
    let result: Int32
    let code: Int32?

    init(_ result: Int32) { (self.result, code) = (result, result < 0 ? errno : nil) }

    static func failure(_ code: Int32) -> Answer { Answer(code: code) }

    private init(code: Int32) { (result, self.code) = (-1, code) }
  }

  private static func groups() -> [gid_t] {
    var groups = [gid_t](repeating: 0, count: 16)
    let count = getgroups(Int32(groups.count), &groups)
    return Array(groups.prefix(Int(max(0, count))))
  }

  /// The user and the group with which this thread opens files (proc(5), `status`).
  private static func fileSystemUser() -> [String] {
    let status = (try? String(contentsOfFile: "/proc/thread-self/status", encoding: .utf8)) ?? ""
    return ["Uid:", "Gid:"].compactMap { key in
      status.split(separator: "\n").first { $0.hasPrefix(key) }?.split(separator: "\t").last.map(String.init)
    }
  }

  /// A file beside the library that root's group may read.
  private func makeSecret(beside path: String) throws -> String {
    let secret = path + "-secret"
    try #require(FileManager.default.createFile(atPath: secret, contents: Data("secret".utf8)))
    try #require(chown(secret, 0, Self.rootsGroup) == 0 && chmod(secret, 0o640) == 0)
    return secret
  }

  @Test func rootsGroupsOpenNothingForTheOwner() throws {
    try withLibrary { path in
      let secret = try makeSecret(beside: path)
      let rights = try OwnerRights(of: path)
      let (answer, held, after) = onThread {
        var held: [gid_t] = []
        guard sheaf_test_set_groups([Self.rootsGroup], 1) == 0 else { return (Answer(-1), held, held) }
        let answer = Answer(
          OwnerRights.acting(on: path) {
            held = Self.groups()
            return open(secret, O_RDONLY)
          })
        return (answer, held, Self.groups())
      }
      #expect(answer == .failure(EACCES))
      // Those of the user database: this account has no group but its first.
      #expect(held == [65_534])
      #expect(after == [Self.rootsGroup])
      withExtendedLifetime(rights) {}
    }
  }

  /// Whoever owns a library can give it a group that they are not in, by a folder that hands its group on.
  @Test func theGroupOfTheFileIsNotTheOwners() throws {
    try withLibrary { path in
      let secret = try makeSecret(beside: path)
      for each in [path, (path as NSString).deletingLastPathComponent] {
        try #require(chown(each, Self.stranger, Self.rootsGroup) == 0)
      }
      let rights = try OwnerRights(of: path)
      #expect(Answer(OwnerRights.acting(on: path) { open(secret, O_RDONLY) }) == .failure(EACCES))
      withExtendedLifetime(rights) {}
    }
  }

  @Test(arguments: takingRights) func whoCannotTakeTheOwnersRightsOpensNothing(_ capability: Int32) throws {
    try withLibrary { path in
      let rights = try OwnerRights(of: path)
      let (refusal, answer, isCalled, user) = onThread {
        guard sheaf_test_drop_capability(capability) == 0 else { return (SheafError?.none, Answer(0), true, [""]) }
        var refusal: SheafError?
        do throws(SheafError) {
          _ = try Store(path: path, lockPath: path + "-lock")
        } catch {
          refusal = error
        }
        // Nor does a thread do anything that lost the rights later.
        var isCalled = false
        let answer = Answer(
          OwnerRights.acting(on: path) {
            isCalled = true
            return 0
          })
        return (refusal, answer, isCalled, Self.fileSystemUser())
      }
      #expect(refusal?.kind == .notPermitted && "\(refusal as Any)".contains("CAP_SETUID and CAP_SETGID"))
      #expect(answer == .failure(EPERM) && !isCalled)
      #expect(user == ["0", "0"])
      withExtendedLifetime(rights) {}
    }
  }

  /// Root's own libraries need no other's rights.
  @Test func rootsOwnLibraryNeedsNone() throws {
    try withFolder { folder in
      let path = folder + "/library.sqlite"
      let isOpened = onThread {
        guard Self.takingRights.allSatisfy({ sheaf_test_drop_capability($0) == 0 }) else { return false }
        return (try? Store(path: path, lockPath: path + "-lock").close()) != nil
      }
      #expect(isOpened)
    }
  }
}
