import ConformanceKit
import MountKit
import Testing

/// The suite on a local disk: every case must pass there, which proves the suite right.
@Suite(.serialized) struct PlainDirectoryTests {
  @Test func everyCaseHasANameOfItsOwn() {
    #expect(Set(Case.all.map(\.name)).count == Case.all.count)
    #expect(Case.all.count >= 120)
  }

  @Test func everyCasePassesOnALocalDisk() throws {
    try withTemporaryFolder { folder in
      let features = try PlainDirectory.probe(folder.path, helper: true)
      for outcome in PlainDirectory.run(Case.applicable(to: features), below: folder.path, features: features) {
        if let failure = outcome.failure { Issue.record("\(outcome.name): \(failure)") }
      }
    }
  }

  @Test(.enabled(if: TestUser.isRoot, "acting as another user needs root"))
  func everyCasePassesOnALocalDiskForAnOrdinaryUser() throws {
    try runAsOrdinaryUser(try TestUser.ordinary()) { user in
      let folder = try TemporaryFolder(for: user)
      return (folder.path, { try folder.remove() })
    }
  }

  @Test(.enabled(if: TestUser.isRoot, "making a file system needs root"))
  func largeAttributesPassOnADiskThatHasThem() throws {
    try withTemporaryFolder { folder in
      let disk = try LoopFileSystem(below: folder, mebibytes: 64, format: ["-O", "ea_inode"])
      defer { disk.detach() }
      let features = try PlainDirectory.probe(disk.mountpoint, helper: true)
      #expect(features.contains(.largeAttributes))
      let cases = Case.applicable(to: features).filter { $0.needs.contains(.largeAttributes) }
      #expect(!cases.isEmpty)
      for outcome in PlainDirectory.run(cases, below: disk.mountpoint, features: features) {
        if let failure = outcome.failure { Issue.record("\(outcome.name): \(failure)") }
      }
    }
  }
}

/// Runs the list by `test-helper` as `user` in the folder that `prepare` makes, and records each failure.
func runAsOrdinaryUser(
  _ user: TestUser, _ prepare: (TestUser) throws -> (folder: String, remove: () throws -> Void)
) throws {
  let helper = try #require(TestHelper.path, "test-helper is not beside the tests")
  let (folder, remove) = try prepare(user)
  let output = try Command([helper, "conformance", folder], as: user, limit: .seconds(900)).run()
  let lines = output.text.split(separator: "\n")
  for line in lines where line.hasPrefix("FAILED") { Issue.record("\(line)") }
  #expect(output.status == 0 && lines.last?.hasSuffix(" passed, 0 failed") == true, "\(output.errorText)")
  try remove()
}
