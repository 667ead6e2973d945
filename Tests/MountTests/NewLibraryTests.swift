import Foundation
import MountKit
import Testing

/// Where a library is made, and where none is since one was there.
@Suite(.serialized) struct NewLibraryTests {
  private struct Place {
    let library: MountedLibrary
    let folder: String

    func names() throws -> [String] { try FileManager.default.contentsOfDirectory(atPath: folder).sorted() }

    func mount(_ file: String? = nil, environment: [String: String?] = [:]) throws -> Command.Output {
      try SheafProgram.run(
        ["mount", library.mountpoint] + (file.map { ["--library", $0] } ?? []), as: library.user,
        environment: environment)
    }

    /// Makes the library, with a document, and closes it.
    func make() throws {
      try library.mount()
      try library.shell("echo text > document")
      try library.unmount()
    }
  }

  private func withPlace(_ body: (Place) throws -> Void) throws {
    let library = try MountedLibrary(as: try TestUser.ordinary())
    do {
      try body(Place(library: library, folder: "\(library.folder.path)/library"))
      try library.tearDown()
    } catch {
      try? library.tearDown()
      throw error
    }
  }

  @Test func theFolderOfANamedLibraryIsNeverMade() throws {
    try withPlace { place in
      let folder = "\(place.folder)/disk/that is away"
      let file = "\(folder)/library.sqlite"
      func isRefused(_ output: Command.Output) -> Bool {
        output.status == 1 && output.errorText.contains("\(folder): the folder of the library does not exist")
      }
      let settings = ["library", "set", "--public-address", "a.b"]
      for command in [["account", "add", "alice@example.com"], ["status"], settings] {
        let output = try SheafProgram.run(command + ["--library", file], as: place.library.user)
        #expect(isRefused(output), "\(output)")
      }
      let named = try place.mount(file)
      #expect(isRefused(named), "\(named)")
      let environment = try place.mount(environment: ["SHEAF_LIBRARY": file])
      #expect(isRefused(environment), "\(environment)")
      #expect(!place.library.isMounted)
      #expect(try place.names() == [])
    }
  }

  @Test func aNewLibraryIsAnnouncedOnce() throws {
    try withPlace { place in
      let file = place.library.library
      let made = "Made a new library at \(file)."
      let mounted = try place.mount(file)
      #expect(mounted.text.hasPrefix(made + "\nMounted "), "\(mounted)")
      try place.library.unmount()
      #expect(try place.mount(file).text.hasPrefix("Mounted "))
      try place.library.unmount()
      let add = ["account", "add", "alice@example.com", "--library"]
      let added = try SheafProgram.run(add + ["\(place.folder)/other.sqlite"], as: place.library.user)
      #expect(added.text.hasPrefix("Made a new library at "), "\(added)")
      let json = try SheafProgram.run(add + ["\(place.folder)/third.sqlite", "--json"], as: place.library.user)
      #expect(json.text.hasPrefix("{") && json.errorText.hasPrefix("Made a new library at "), "\(json)")
    }
  }

  /// One of each file that lies beside a library, and all of them.
  @Test func whereALibraryWasNoneIsMade() throws {
    try withPlace { place in
      let file = place.library.library
      try place.make()
      let lying = try place.names().filter { $0 != "library.sqlite" && !$0.hasSuffix("-log") }
      #expect(lying.contains("library.sqlite-lock") && lying.contains("library.sqlite-reserve"))
      try Command(["mv", file, "\(place.folder)/moved"]).succeed()
      let commands = [
        ["mount", place.library.mountpoint], ["account", "add", "bob@example.com"], ["status"], ["check"],
      ]
      func refusal(_ names: [String]) throws {
        let before = try place.names()
        for command in commands {
          let output = try SheafProgram.run(command + ["--library", file], as: place.library.user)
          #expect(output.status == 1 && output.errorText.contains("is not there any more"), "\(names): \(output)")
          for name in names { #expect(output.errorText.contains(name), "\(output)") }
        }
        #expect(try place.names() == before)
        #expect(!place.library.isMounted)
      }
      try refusal(lying)
      try Command.shell("rm library.sqlite*", in: place.folder).succeed()
      for suffix in ["lock", "reserve", "changes", "working", "wal"] {
        let name = "library.sqlite-\(suffix)"
        try Command.shell("echo 1 > \(name)", as: place.library.user, in: place.folder).succeed()
        try refusal([name])
        try Command.shell("rm library.sqlite*", in: place.folder).succeed()
      }
      // What was moved away is whole, and comes back.
      try Command.shell("mv moved library.sqlite", in: place.folder).succeed()
      try place.library.mount()
      #expect(try place.library.shell("cat document").text == "text")
    }
  }

  @Test func anEmptyFileIsNoLibrary() throws {
    try withPlace { place in
      let file = place.library.library
      try Command(["touch", file], as: place.library.user).succeed()
      let refused = try place.mount(file)
      #expect(refused.status == 1 && refused.errorText.contains("is an empty file, and no library"), "\(refused)")
      let status = try SheafProgram.run(["status", "--library", file], as: place.library.user)
      #expect(status.status == 1 && status.errorText.contains("is an empty file, and no library"), "\(status)")
      #expect(try place.names() == ["library.sqlite"])
      try Command(["rm", file]).succeed()
      // Cut down to nothing, as by a file system that lost its contents.
      try place.make()
      try Command(["truncate", "--size=0", file]).succeed()
      let cut = try place.mount(file)
      #expect(cut.status == 1 && cut.errorText.contains("is empty, beside library.sqlite-"), "\(cut)")
      // One that was being made when its process was killed is made.
      try Command.shell("rm library.sqlite-*; echo 1 > library.sqlite-lock", as: place.library.user, in: place.folder)
        .succeed()
      let made = try place.mount(file)
      #expect(made.status == 0 && made.text.hasPrefix("Made a new library at "), "\(made)")
    }
  }
}
