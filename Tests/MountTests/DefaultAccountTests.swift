import Foundation
import MountKit
import Testing

/// Whose documents are mounted, and who acts, where nobody is named.
@Suite(.serialized) struct DefaultAccountTests {
  /// The handles of the accounts, the default one marked.
  private func handles(_ library: MountedLibrary) throws -> [String] {
    struct Account: Decodable {
      let handle: String
      let isDefault: Bool
    }
    let output = try library.sheafSucceeds("account", "list", "--library", library.library, "--json").output
    return try JSONDecoder().decode([Account].self, from: Data(output)).map { $0.handle + ($0.isDefault ? " *" : "") }
  }

  /// A library with accounts that is not mounted.
  private func withLibrary(accounts: [String], _ body: (MountedLibrary) throws -> Void) throws {
    let library = try MountedLibrary()
    do {
      for account in accounts { try library.sheafSucceeds("account", "add", account, "--library", library.library) }
      try body(library)
      try library.tearDown()
    } catch {
      try? library.tearDown()
      throw error
    }
  }

  @Test func theFirstAccountIsMountedUntilAnotherIsSet() throws {
    try withLibrary(accounts: ["alice@example.com", "bob@example.com"]) { library in
      func mounted() throws -> String {
        let output = try library.sheafSucceeds("mount", library.mountpoint, "--library", library.library)
        try library.unmount()
        return output.text
      }
      func acting() throws -> String {
        let output = try library.sheafSucceeds("account", "list", "--library", library.library).text
        return output.split(separator: "\n").filter { $0.hasSuffix(" default") }.joined()
      }
      #expect(try mounted().hasSuffix(" for alice@example.com."))
      #expect(try acting().hasPrefix("alice@example.com"))
      let set = ["library", "set", "--library", library.library, "--default-account"]
      #expect(try SheafProgram.run(set + ["bob@example.com"]).text == "bob@example.com is the default account.")
      #expect(try mounted().hasSuffix(" for bob@example.com."))
      // Commands alike: the document is bob's.
      let copy = "\(library.folder.path)/copy"
      try library.sheafSucceeds("mount", library.mountpoint, "--library", library.library)
      try library.shell("echo bob > document")
      try library.unmount()
      let said = try library.sheafSucceeds("send-copy", "Documents/document", copy, "--library", library.library).text
      #expect(said == "Copied Documents/document to \(copy).")
      #expect(try handles(library) == ["alice@example.com", "bob@example.com *"])
      #expect(try String(contentsOfFile: copy, encoding: .utf8) == "bob\n")
      let unknown = try SheafProgram.run(set + ["carol@example.com"])
      #expect(unknown.status == 1 && unknown.errorText.contains("carol@example.com"), "\(unknown)")
      try library.sheafSucceeds("purge", "Documents/document", "--yes", "--library", library.library)
      try library.sheafSucceeds("account", "remove", "bob@example.com", "--library", library.library)
      // An account of that handle is a new one, and nobody set that.
      try library.sheafSucceeds("account", "add", "bob@example.com", "--library", library.library)
      #expect(try mounted().hasSuffix(" for alice@example.com."))
      #expect(try handles(library) == ["alice@example.com *", "bob@example.com"])
    }
  }

  @Test func theBackupOfAnotherUsersLibraryMountsForItsAccount() throws {
    let user = try TestUser.ordinary()
    try withMount { library in
      try library.shell("echo text > document")
      let backup = "\(library.folder.path)/backup.sqlite"
      let (folder, place) = (
        try library.folder.folder("theirs", for: user), try library.folder.folder("place", for: user)
      )
      try library.sheafSucceeds("backup", backup, "--library", library.library)
      try Command(["install", "-o", user.name, backup, "\(folder)/backup.sqlite"]).succeed()
      defer { _ = try? SheafProgram.run(["unmount", place], as: user) }
      let output = try SheafProgram.run(["mount", place, "--library", "\(folder)/backup.sqlite"], as: user)
      #expect(output.text.hasSuffix(" for alice@example.com."), "\(output)")
      #expect(try Command(["cat", "\(place)/Documents/document"], as: user).succeed().text == "text")
    }
  }

  @Test func anUnknownAccountIsRefusedWithThoseThatThereAre() throws {
    try withLibrary(accounts: ["alice@example.com", "bob@example.com"]) { library in
      let output = try library.sheaf(
        "mount", library.mountpoint, "--library", library.library, "--as", "carol@example.com")
      #expect(output.status == 1)
      #expect(output.errorText.contains("which has alice@example.com, bob@example.com"), "\(output)")
      #expect(!library.isMounted)
      #expect(try handles(library) == ["alice@example.com *", "bob@example.com"])
    }
  }

  /// Whoever gives a mount away names the account, or the user has one of their name.
  @Test(.enabled(if: TestUser.isRoot, "mounting for another user needs root"))
  func rootGivesNobodyAnothersDocuments() throws {
    let user = try TestUser.ordinary()
    try withLibrary(accounts: ["alice@example.com"]) { library in
      let mount = ["mount", library.mountpoint, "--library", library.library, "--for", user.name]
      let refused = try SheafProgram.run(mount)
      #expect(refused.status == 1 && refused.errorText.contains("which has alice@example.com"), "\(refused)")
      #expect(!library.isMounted)
      try library.sheafSucceeds("account", "add", "\(user.name)@elsewhere", "--library", library.library)
      let given = try SheafProgram.run(mount)
      #expect(given.status == 0 && given.text.hasSuffix(" for \(user.name)@elsewhere."), "\(given)")
      try library.unmount()
      #expect(try handles(library) == ["alice@example.com *", "\(user.name)@elsewhere"])
    }
  }
}
