import ConformanceKit
import Foundation
import Glibc
import MountKit
import SheafStore
import Testing

/// Every durable step in turn: the process dies there, or the step fails, and nothing is lost or half done.
@Suite(.serialized) struct FaultPointTests {
  /// Deeds that pass every durable step; `%` is the folder.
  static let exercise: [Deed] = {
    let text = Contents(seed: 1, count: 5000)
    let large = Contents(seed: 2, count: 3_000_000)
    let other = Contents(seed: 3, count: 70_000)
    return [
      .save("doc", text), .save("doc", other), .append("doc", text), .mkdir("folder"), .mkdir("other"),
      .symlink("doc", at: "symlink"), .link("doc", "hard"), .rename("hard", "moved"), .chmod("doc", 0o600),
      .mark("doc", "blue"), .mark("folder", "red"), .unmark("folder"), .touch("doc", 1_000_000_000),
      .replace("doc", text), .save("large", large), .patch("large", at: 1_000_000, other),
      .truncate("large", 2_000_000),
      .save("gone", text), .unlink("gone"), .rmdir("other"), .rename("folder", "renamed"),
      .command(["label", "%/doc", "a label"]), .save("doc", other),
      .revive(["restore", "%/doc", "--version", "1"], "doc", text),
      .revive(["recover", "%/gone"], "gone", text), .save("secret", other), .unlink("secret"),
      .command(["purge", "%/secret", "--yes"]), .command(["compact"]), .save("last", text),
    ]
  }()

  @Test(arguments: FaultPoint.allCases.map(\.rawValue))
  func theProcessDies(_ point: String) throws {
    try run(point, "kill")
  }

  @Test(arguments: FaultPoint.allCases.map(\.rawValue))
  func theStepFails(_ point: String) throws {
    try run(point, "fail")
  }

  @Test(arguments: FaultPoint.allCases.map(\.rawValue))
  func theDiskIsFullAtTheStep(_ point: String) throws {
    try run(point, "full")
  }

  /// Does the exercise again and again, with the fault at the first, second, third passage of the point.
  private func run(_ point: String, _ action: String) throws {
    for count in [1, 2, 5] {
      try withTemporaryFolder { records in
        let library = try MountedLibrary()
        defer { library.breakMount() }
        try once(library, "\(records.path)/record", "\(point):\(action):\(count)")
        try library.tearDown()
      }
    }
  }

  private func once(_ library: MountedLibrary, _ record: String, _ fault: String) throws {
    let note = Comment(rawValue: "SHEAF_FAULT=\(fault)")
    let mounted = try library.tryMount(environment: ["SHEAF_FAULT": fault])
    if mounted.status != 0 || library.server == nil {
      // The fault came while the library was being made: what is there can be mounted.
      library.breakMount()
      try library.mount()
      #expect(try library.check() == [], note)
      return
    }
    let folder = "\(library.documents)/work"
    let worker = Worker(folder: folder, record: record)
    let made = mkdir(folder, 0o755) == 0
    if made {
      try worker.perform(Self.exercise.map { $0.naming(library.library) })
    }
    if library.server == nil {
      library.breakMount()
      try library.mount()
    }
    if !made {
      // The fault came at the very first folder: it is there or not.
      #expect(mkdir(folder, 0o755) == 0 || errno == EEXIST, note)
    }
    for line in try worker.judge() { Issue.record("SHEAF_FAULT=\(fault): \(line)") }
    // The mount goes on working, and the tree survives an orderly end.
    try Deed.save("afterwards", Contents(seed: 9, count: 100)).perform(in: folder)
    #expect(unlink("\(folder)/afterwards") == 0, note)
    try library.unmount()
    #expect(try library.check() == [], note)
    try library.mount()
    for line in try worker.judge() { Issue.record("SHEAF_FAULT=\(fault), mounted again: \(line)") }
  }
}

extension Deed {
  /// Commands without a path get the library's name.
  func naming(_ library: String) -> Deed {
    if case .command(let words) = self, !words.contains(where: { $0.contains("%") }) {
      return .command(words + ["--library", library])
    }
    return self
  }
}
