import Testing

@testable import Fuse

@Suite struct MountTableTests {
  private static let text = #"""
    22 27 0:20 / /proc rw,nosuid,nodev,noexec,relatime shared:5 - proc proc rw
    27 1 8:1 / / rw,relatime shared:1 - ext4 /dev/sda1 rw
    90 27 0:50 / /home/ann/My\040Sheaf rw,nosuid,nodev shared:9 master:2 - fuse.sheaf /home/ann/a\011b\134.sqlite rw
    91 90 0:51 / /home/ann/My\040Sheaf/Documents/inner rw - tmpfs tmpfs rw
    92 27 0:50 /Documents/Work /work rw - fuse.sheaf /home/ann/a\011b\134.sqlite rw
    93 27 0:52 / /work rw - fuse.sheaf /other.sqlite rw
    no line of a table
    """#

  private let table = MountTable(parsing: Array(text.utf8))

  @Test func readsEscapesAndOptionalFields() throws {
    #expect(table.entries.count == 6)
    let entry = try #require(table.entry(at: Array("/home/ann/My Sheaf".utf8)))
    #expect(entry.type == "fuse.sheaf")
    #expect(entry.id == "90")
    #expect(entry.device == "0:50")
    #expect(entry.path == "/home/ann/My Sheaf")
    #expect(entry.source == Array("/home/ann/a\tb\\.sqlite".utf8))
  }

  @Test func takesTheLongestPlace() {
    #expect(table.entry(containing: Array("/home/ann/My Sheaf/Documents/x".utf8))?.type == "fuse.sheaf")
    #expect(table.entry(containing: Array("/home/ann/My Sheaf/Documents/inner/x".utf8))?.type == "tmpfs")
    #expect(table.entry(containing: Array("/home/ann/My Sheafs".utf8))?.type == "ext4")
    #expect(table.entry(containing: Array("/home/ann/My Sheaf".utf8))?.type == "fuse.sheaf")
  }

  @Test func takesTheUppermostOfSeveral() {
    #expect(table.entry(at: Array("/work".utf8))?.source == Array("/other.sqlite".utf8))
    #expect(table.entry(containing: Array("/work/x".utf8))?.source == Array("/other.sqlite".utf8))
  }

  @Test func knowsAllPlacesOfOneMount() throws {
    let entry = try #require(table.entry(at: Array("/home/ann/My Sheaf".utf8)))
    let places = table.mountpoints(sharing: entry).map { String(decoding: $0, as: UTF8.self) }
    #expect(places == ["/home/ann/My Sheaf", "/work"])
  }

  @Test func readsThisMachine() throws {
    #expect(try MountTable.read().entry(containing: Array("/proc/self".utf8))?.type == "proc")
    #expect(MountTable.topmost(at: "/proc") != nil)
  }
}
