import Crypto
import Foundation
import Glibc
import MountKit
import SheafModel
import Testing

@testable import SheafHub
@testable import SheafHubClient

/// The keys that stand for a device at other hubs: on the disk before anybody hears of them, and the user's alone.
@Suite struct KeyFileTests {
  @Test func keysAreFoundAgain() throws {
    try withTemporaryFolder { folder in
      let path = "\(folder.path)/device.keys"
      let made = try KeyFile(path).make(3) + KeyFile(path).make(2)
      #expect(Set(made.map(\.rawRepresentation)).count == 5)
      for key in made {
        let found = try KeyFile(path).key(of: key.publicKey.x963Representation)
        #expect(found?.rawRepresentation == key.rawRepresentation)
      }
      let other = P256.Signing.PrivateKey().publicKey.x963Representation
      #expect(try KeyFile(path).key(of: other) == nil)
      #expect(try KeyFile("\(folder.path)/absent").key(of: other) == nil)
      var status = stat()
      #expect(stat(path, &status) == 0 && status.st_mode & 0o777 == 0o600)
      #expect(chmod(path, 0o644) == 0)
      #expect(throws: SheafError.self) { try KeyFile(path).key(of: other) }
      #expect(throws: SheafError.self) { try KeyFile(path).make(1) }
    }
  }

  @Test func anotherFileIsNone() throws {
    try withTemporaryFolder { folder in
      let path = "\(folder.path)/device.keys"
      for text in ["", "{}", #"{"format":2,"keys":[]}"#, #"{"format":1,"keys":["AAAA"]}"#] {
        #expect(
          FileManager.default.createFile(
            atPath: path, contents: Data(text.utf8), attributes: [.posixPermissions: 0o600]))
        let error = #expect(throws: SheafError.self, "\(text)") { try KeyFile(path).key(of: Data()) }
        #expect(error?.kind == .corrupt)
      }
    }
  }

  /// A device makes the same of the hashes as a hub.
  @Test func hashesLeadUpAsAtTheHub() throws {
    for size in IdentityTree.sizes {
      let leaves = (0..<size).map { IdentityTree.leaf(Data([UInt8($0)])) }
      let tree = try #require(IdentityTree(leaves: leaves))
      for index in 0..<size {
        let hashes = GuestSessions.inclusionHashes(of: index, in: leaves.map { Data($0) })
        #expect(hashes == tree.inclusionHashes(of: index))
      }
    }
  }

  @Test func otherHubsHaveNamesAndTheUsualPort() {
    #expect(HubIdentity(elsewhere: "https://one.example")?.description == "https://one.example")
    for text in [
      "http://one.example", "https://one.example:8443", "https://ONE.example", "https://one.example/", "one",
    ] {
      #expect(HubIdentity(elsewhere: text) == nil, "\(text)")
    }
  }
}
