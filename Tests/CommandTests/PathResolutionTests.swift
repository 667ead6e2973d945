import Glibc
import SheafModel
import SheafMount
import Testing

@testable import SheafCommand

@Suite struct PathResolutionTests {
  private static let mounts = #"""
    27 1 8:1 / / rw - ext4 /dev/sda1 rw
    90 27 0:50 / /home/ann/Sheaf rw - fuse.sheaf /home/ann/library.sqlite rw
    92 27 0:50 /Documents/Work /work rw - fuse.sheaf /home/ann/library.sqlite rw
    93 27 0:53 / /dead rw - fuse.sheaf /dead.sqlite rw
    """#
  private static let places = ["/home/ann/Sheaf", "/work"]
  private static let library = "/home/ann/library.sqlite"

  /// Folders that exist, and where a link leads.
  private static let folders: [String: String] = [
    "/": "/", "/home": "/home", "/home/ann": "/home/ann", "/home/ann/Sheaf": "/home/ann/Sheaf",
    "/home/ann/Sheaf/Documents": "/home/ann/Sheaf/Documents",
    "/home/ann/Sheaf/Documents/sub": "/home/ann/Sheaf/Documents/sub",
    "/home/ann/Sheaf/Documents/sub/..": "/home/ann/Sheaf/Documents",
    "/home/ann/link": "/home/ann/Sheaf/Documents/sub", "/work": "/work", "/tmp": "/tmp",
  ]

  private func place(_ path: String, from folder: String = "/home/ann") throws(SheafError) -> ItemPlace {
    try place(bytes: Array(path.utf8), from: folder)
  }

  private func place(bytes: [UInt8], from folder: String = "/home/ann") throws(SheafError) -> ItemPlace {
    let resolution = PathResolution(
      table: MountTable(parsing: Array(Self.mounts.utf8)), workingDirectory: Array(folder.utf8)
    ) { path in
      let text = path.readable.replacing("//", with: "/")
      if text.hasPrefix("/dead") { return .failure(SystemError(code: ENOTCONN)) }
      guard let target = Self.folders[text] else { return .failure(SystemError(code: ENOENT)) }
      return .success(Array(target.utf8))
    }
    return try resolution.place(of: bytes)
  }

  private func mounted(_ path: String) -> ItemPlace {
    .mount(library: Self.library, mountpoints: Self.places, path: Array(path.utf8))
  }

  @Test(arguments: [
    ("/home/ann/Sheaf/Documents/a.txt", "Documents/a.txt"),
    ("Sheaf/Documents/a.txt", "Documents/a.txt"),
    ("Sheaf/Documents/", "Documents"),
    ("Sheaf//Documents/./sub/a", "Documents/sub/a"),
    ("link/a", "Documents/sub/a"),
    ("Sheaf/Documents/sub/../a", "Documents/a"),
    ("Sheaf/Documents/gone/deep/./a", "Documents/gone/deep/a"),
    ("/work/report", "Documents/Work/report"),
    ("/work", "Documents/Work"),
    ("Sheaf/Shared/bob@example.com/x", "Shared/bob@example.com/x"),
  ])
  func findsItemsInMounts(path: String, item: String) throws {
    #expect(try place(path) == mounted(item))
  }

  @Test func standsInTheMount() throws {
    #expect(try place("a", from: "/home/ann/Sheaf/Documents/sub") == mounted("Documents/sub/a"))
    #expect(try place(".", from: "/home/ann/Sheaf/Documents/sub") == mounted("Documents/sub"))
    #expect(try place("Documents/a", from: "/home/ann/Sheaf") == mounted("Documents/a"))
  }

  /// Commands print paths as the library has them, and take them so wherever one stands in a mount.
  @Test func takesWhatCommandsPrint() throws {
    for folder in ["/home/ann/Sheaf/Documents", "/home/ann/Sheaf/Documents/sub"] {
      #expect(try place("Documents/gone/a", from: folder) == mounted("Documents/gone/a"))
      #expect(try place("./Shared//bob@example.com/x", from: folder) == mounted("Shared/bob@example.com/x"))
    }
    #expect(try place("Documents/a", from: "/work") == mounted("Documents/a"))
    #expect(try place("Documentsa", from: "/home/ann/Sheaf/Documents") == mounted("Documents/Documentsa"))
    // Where there is such an entry, it is that.
    #expect(try place("Documents/a", from: "/home/ann/Sheaf") == mounted("Documents/a"))
    #expect(try place("Documents/a", from: "/tmp") == .library(path: Array("Documents/a".utf8)))
  }

  @Test func doesNotFollowTheLastComponent() throws {
    #expect(throws: SheafError.self) { try place("link") }
  }

  @Test func keepsBytesThatAreNoText() throws {
    let name: [UInt8] = [0xFF, 0x20, 0xC3]
    #expect(
      try place(bytes: Array("Sheaf/Documents/".utf8) + name)
        == .mount(library: Self.library, mountpoints: Self.places, path: Array("Documents/".utf8) + name))
  }

  @Test func takesDocumentsOfTheNamedLibraryOutsideOfMounts() throws {
    #expect(try place("Documents/a/b", from: "/tmp") == .library(path: Array("Documents/a/b".utf8)))
    #expect(try place("./Documents/a/", from: "/tmp") == .library(path: Array("Documents/a".utf8)))
  }

  @Test(arguments: [
    "/etc/passwd", "notes", "", "Sheaf", "Sheaf/other/x", "Sheaf/Documents/.versions/a", "/tmp/Documents/a",
    "Sheaf/Documents/gone/../a", "Documents/.versions/a.txt", "Documents/t/.deleted/a",
  ])
  func refusesWhatIsNoItem(path: String) {
    #expect(throws: SheafError.self) { try place(path) }
  }

  @Test(arguments: ["/tmp", "/home/ann/Sheaf"]) func tellsWhatIsNoID(_ folder: String) {
    let error = #expect(throws: SheafError.self) { try place("id:zzz", from: folder) }
    #expect(error?.reason == "is no id")
  }

  @Test func tellsOfADeadMount() {
    #expect {
      try place("/dead/Documents/a")
    } throws: { error in
      guard let error = error as? SheafError else { return false }
      return error.kind == .unavailable && error.description.contains("sheaf mount --all --library /dead.sqlite")
    }
  }
}
