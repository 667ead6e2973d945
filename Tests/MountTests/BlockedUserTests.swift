import ConformanceKit
import Foundation
import Glibc
import MountKit
import Testing

/// Whether the kernel can be told to look up all names anew.
private let canExpireNames: Bool = {
  guard let release = try? String(contentsOfFile: "/proc/sys/kernel/osrelease", encoding: .utf8) else { return false }
  let numbers = release.split { !$0.isNumber }.prefix(2).compactMap { Int($0) }
  return numbers.count == 2 && (numbers[0], numbers[1]) >= (6, 16)
}()

/// A user to whom root gave a mount has the kernel wait in it, for memory that a server of theirs never gives: others
/// go on.
@Suite(
  .serialized, .enabled(if: TestUser.isRoot, "mounting for another user needs root"),
  .enabled(if: canExpireNames, "needs FUSE_NOTIFY_INC_EPOCH, of Linux 6.16"))
struct BlockedUserTests {
  /// Lists a folder into a mapping of a file whose server has stopped; until then it waits for the file `go`. A kernel
  /// that kept the first listing would copy the second one from there, with its page locked.
  private static let blocker = """
    import ctypes, mmap, os, sys, time
    folder, slow, ready, go = sys.argv[1:]
    os.listdir(folder)
    file = os.open(slow, os.O_RDWR)
    memory = mmap.mmap(file, 1 << 20, flags=mmap.MAP_PRIVATE, prot=mmap.PROT_READ | mmap.PROT_WRITE)
    place = ctypes.addressof(ctypes.c_char.from_buffer(memory))
    listed = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    open(ready, "w").close()
    while not os.path.exists(go):
        time.sleep(0.01)
    ctypes.CDLL(None).syscall(217, listed, ctypes.c_void_p(place), 65536)
    """

  @Test func othersGoOnWhileAUserHasTheKernelWait() throws {
    let user = try TestUser.ordinary()
    try withMount(handle: "slow@example.com", options: ["--allow-other"]) { slow in
      try slow.shell("head -c 1048576 /dev/zero > slow; chmod 666 slow")
      // Its pages are not in the kernel then.
      try slow.unmount()
      try slow.mount()
      try withMount { library in
        try block(library, user, slow)
      }
    }
  }

  private func block(_ library: MountedLibrary, _ user: TestUser, _ slow: MountedLibrary) throws {
    let (handle, theirs) = ("user@example.com", try library.folder.folder("theirs", for: user))
    try library.shell("mkdir team; echo one > team/doc")
    try library.sheafSucceeds("account", "add", handle, "--library", library.library)
    let team = "\(library.documents)/team"
    let share = try library.sheafSucceeds("share", team, "--with", handle, "--can", "edit", "--json").output
    let url = try JSONDecoder().decode([String: AnyURL].self, from: Data(share))["url"]?.text ?? ""
    try library.sheafSucceeds("accept", url, "--as", handle, "--library", library.library)
    try library.sheafSucceeds("mount", theirs, "--library", library.library, "--as", handle, "--for", user.name)
    defer { _ = try? Command(["umount", "--lazy", theirs], limit: .seconds(20)).run() }
    let (ready, go) = ("\(theirs)-ready", "\(theirs)-go")
    #expect(FileManager.default.createFile(atPath: ready, contents: nil) && chmod(ready, 0o666) == 0)
    let started = try modificationTime(ready)
    let blocker = try BackgroundCommand(
      Command(
        [
          "/usr/bin/python3", "-c", Self.blocker, "\(theirs)/Shared/\(library.handle)/team", "\(slow.documents)/slow",
          ready, go,
        ], as: user))
    defer { blocker.end() }
    try eventually("the file is mapped") { try modificationTime(ready) != started }
    let stopped = try #require(slow.server)
    #expect(Glibc.kill(stopped, SIGSTOP) == 0)
    defer { Glibc.kill(stopped, SIGCONT) }
    #expect(FileManager.default.createFile(atPath: go, contents: nil))
    try eventually("the user's program waits in the kernel") {
      try String(contentsOfFile: "/proc/\(blocker.process)/syscall", encoding: .utf8).hasPrefix("217 ")
    }

    // Each of these tells the user's mount something.
    try Command(["touch", "\(team)/new"], limit: .seconds(10)).succeed()
    try Command(["mv", "\(team)/doc", "\(team)/moved"], limit: .seconds(10)).succeed()
    try library.sheafSucceeds("participant", "remove", team, handle, limit: .seconds(10))
    let unmounted = try library.sheaf("unmount", theirs, limit: .seconds(20))
    #expect(unmounted.status != 0 && unmounted.errorText.contains("is in use by python3"), "\(unmounted)")
    try library.shell("echo two > team/moved; cat team/moved")
    let server = try #require(library.server)
    #expect(Glibc.kill(server, SIGKILL) == 0)
    try eventually("the library is free", within: .seconds(20)) {
      try library.sheaf("versions", "Documents/team/moved", "--library", library.library, limit: .seconds(20)).status
        == 0
    }
    #expect(try library.check() == [])
  }

  private struct AnyURL: Decodable {
    let text: String?

    init(from decoder: any Decoder) throws { text = try? decoder.singleValueContainer().decode(String.self) }
  }

  private func modificationTime(_ path: String) throws -> Int {
    var status = stat()
    guard lstat(path, &status) == 0 else { throw Errno(errno, "stat \(path)") }
    return status.st_mtim.tv_nsec
  }
}
