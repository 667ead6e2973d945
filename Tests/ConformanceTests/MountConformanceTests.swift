import ConformanceKit
import Glibc
import MountKit
import Testing

/// The suite in `Documents/` of a real mount.
@Suite(.serialized) struct MountConformanceTests {
  @Test func everyCasePassesOnAMount() throws {
    let library = try MountedLibrary(options: TestUser.isRoot ? ["--allow-other"] : [])
    do {
      try library.mount()
      let place = "\(library.documents)/conformance"
      #expect(mkdir(place, 0o755) == 0)
      let features = try PlainDirectory.probe(place, helper: true)
      #expect(features.contains(.largeAttributes), "attributes of 64 KiB are refused")
      for one in Case.applicable(to: features) {
        let (outcomes, late) = guarded(within: .seconds(180), late: library.breakMount) {
          PlainDirectory.run([one], below: place, features: features)
        }
        if let failure = outcomes[0].failure { Issue.record("\(one.name): \(failure)") }
        guard late || library.server == nil else { continue }
        Issue.record("\(one.name): \(late ? "not done after 180 s" : "the process ended"); mounting anew")
        library.breakMount()
        try library.mount()
      }
      try library.unmount()
      #expect(try library.check() == [])
      try library.tearDown()
    } catch {
      try? library.tearDown()
      throw error
    }
  }

  @Test(.enabled(if: TestUser.isRoot, "acting as another user needs root"))
  func everyCasePassesOnAnOrdinaryUsersMount() throws {
    let user = try TestUser.ordinary()
    try runAsOrdinaryUser(user) { user in
      let library = try MountedLibrary(as: user)
      try library.mount()
      return (library.documents, { try library.tearDown() })
    }
  }
}
