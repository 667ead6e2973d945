import ConformanceKit
import Foundation
import Glibc
import MountKit
import SheafStore
import Synchronization
import Testing

/// Every durable step in turn: the process dies there, or the step fails, and nothing is lost or half done.
@Suite(.serialized) struct FaultPointTests {
  /// Actions that pass every durable step; `%` is the folder.
  static let exercise: [Action] = {
    let text = Contents(seed: 1, count: 5000)
    let large = Contents(seed: 2, count: 3_000_000)
    let other = Contents(seed: 3, count: 70_000)
    return [
      // The first create is that of a document which no later action is about.
      .save("first", text), .save("doc", text), .save("doc", other), .append("doc", text), .mkdir("folder"),
      // The second fsync(2) is one of the record of changes.
      .append("doc", text), .mkdir("other"),
      .symlink("doc", at: "symlink"), .link("doc", "hard"), .rename("hard", "moved"), .chmod("doc", 0o600),
      .mark("doc", "blue"), .mark("folder", "red"), .unmark("folder"), .touch("doc", 1_000_000_000),
      .replace("doc", text), .save("large", large), .patch("large", at: 1_000_000, other),
      .truncate("large", 2_000_000),
      .save("gone", text), .unlink("gone"), .rmdir("other"), .rename("folder", "renamed"),
      .command(["label", "%/doc", "a label"]), .command(["comment", "%/doc", "a comment"]), .save("doc", other),
      .revive(["restore", "%/doc", "--version", "1"], "doc", text),
      .revive(["recover", "%/gone"], "gone", text), .save("secret", other), .unlink("secret"),
      .command(["purge", "%/secret", "--yes"]), .command(["compact"]), .save("last", text),
      .command(["share", "%/last", "--anyone", "view"]),
    ]
  }()

  /// What passes the steps that the library takes by itself, some time later.
  static let patience: [Action] = [
    .scatter("scattered", 4200), .save("spilled", Contents(seed: 7, count: 9_000_000)),
    .patch("spilled", at: 100, Contents(seed: 8, count: 8_500_000)), .pause(1.5),
    .save("read", Contents(seed: 4, count: 6_000_000)), .read("read"),
    .save("removed", Contents(seed: 5, count: 100)), .removeElsewhere("removed"),
    .save("status", Contents(seed: 6, count: 100)), .command(["status"]), .pause(6.5), .command(["compact"]),
  ]

  /// Points that other tests pass: a disk that is full, and a recovery.
  static let elsewhere: Set<String> = ["reserve.release", "sweep."]

  /// The points of the steps of ``patience``.
  static let patientSteps: Set<String> = [
    "spill", "endSession", "settle", "sweep", "times", "checkpoint", "workingCopy", "working",
  ]

  private static func isPatient(_ point: String) -> Bool {
    patientSteps.contains(String(point.prefix { $0 != "." && $0 != ":" }))
  }

  /// Those of giving a tree to another account (``TransferFaultTests``) and of replicas have tests of their own.
  static let points = FaultPoint.allCases.map(\.rawValue).filter {
    !$0.hasPrefix("transfer.") && !$0.hasPrefix("replica.")
  }
  static let promptPoints = points.filter { !isPatient($0) }

  /// After the commit a step cannot fail any more.
  private static func canFail(_ point: String) -> Bool { !point.hasSuffix(".committed") }

  @Test(arguments: promptPoints)
  func theProcessDies(_ point: String) throws {
    try run("\(point):kill:1")
    try run("\(point):kill:3")
  }

  @Test(arguments: promptPoints.filter(canFail))
  func theStepFails(_ point: String) throws {
    try run("\(point):fail:1")
  }

  @Test(arguments: promptPoints.filter(canFail))
  func theDiskIsFullAtTheStep(_ point: String) throws {
    try run("\(point):full:1")
  }

  /// Several at a time, since most of each is waiting.
  @Test(arguments: ["kill", "fail", "full"])
  func theSameAtStepsThatTheLibraryTakesSomeTimeLater(_ action: String) throws {
    let faults = Self.points.filter { Self.isPatient($0) && (action == "kill" || Self.canFail($0)) }
      .map { "\($0):\(action):1" }
    let remaining = Mutex(faults)
    let wrong = Mutex<[String]>([])
    DispatchQueue.concurrentPerform(iterations: 4) { _ in
      while let fault = remaining.withLock({ $0.popLast() }) {
        do {
          let found = try problems(of: fault)
          wrong.withLock { $0 += found }
        } catch {
          wrong.withLock { $0.append("SHEAF_FAULT=\(fault): \(error)") }
        }
      }
    }
    #expect(faults.count >= 10)
    for line in wrong.withLock({ $0 }) { Issue.record("\(line)") }
  }

  /// Points that opening a library, or `compact`, can pass.
  static let recoveringPoints = points.filter { point in
    [
      "accounts", "endSession", "settle", "times", "thin", "sweep", "pack", "compress", "log.sync", "checkpoint",
      "reserve", "shrink", "spill", "save",
    ].contains { point.hasPrefix($0) }
  }

  @Test(arguments: recoveringPoints)
  func theProcessDiesAgainWhileItRecovers(_ point: String) throws {
    try withTemporaryFolder { records in
      let library = try MountedLibrary()
      defer { library.breakMount() }
      try library.mount()
      let folder = "\(library.documents)/work"
      try #require(mkdir(folder, 0o755) == 0)
      let worker = Worker(folder: folder, record: "\(records.path)/record")
      try worker.perform([
        .save("doc", Contents(seed: 1, count: 100)), .save("young", Contents(seed: 2, count: 100_000)),
        .unlink("young"),
        .removeElsewhere("doc"), .scatter("scattered", 4200), .rename("scattered", "renamed"),
      ])
      // A session that is open, autosaved, and goes on.
      let file = open("\(folder)/open", O_RDWR | O_CREAT | O_CLOEXEC, 0o644)
      #expect(write(file, "saved", 5) == 5)
      try eventually("the autosave", within: .seconds(5)) { Attributes.state(file) == "saved" }
      #expect(write(file, " and not", 8) == 8)
      // A working copy that spilled, which nobody was promised.
      let spilled = open("\(folder)/spilled", O_RDWR | O_CREAT | O_CLOEXEC, 0o644)
      // In a share it is stored early, so that there is something to sweep.
      _ = try library.sheafSucceeds("share", "\(folder)/spilled", "--anyone", "view")
      for number in 0..<4200 { #expect(pwrite(spilled, "y", 1, number * 10) == 1) }
      // A document that is saved, and too large to be stored yet.
      let large = Contents(seed: 3, count: 12_000_000)
      try Action.save("large", large).perform(in: folder)
      try library.killServer()
      close(file)
      close(spilled)
      // The next process, and one more after it.
      _ = try library.tryMount(environment: ["SHEAF_FAULT": "\(point):kill:1"])
      let compacted = try library.sheaf("compact", "--library", library.library)
      // The mount may have come to the point by itself before; `compact` then finds none, and does it alone.
      #expect(
        library.server == nil || compacted.status == 0 && !point.hasPrefix("sweep."),
        "SHEAF_FAULT=\(point) while recovering, at sheaf compact: \(compacted)")
      if library.server != nil { try library.killServer() }
      library.breakMount()
      try library.mount()
      let text = try String(contentsOfFile: "\(folder)/open", encoding: .utf8)
      #expect(text == "saved" || text == "saved and not", "SHEAF_FAULT=\(point)")
      let found = FileManager.default.contents(atPath: "\(folder)/large").map { [UInt8]($0) }
      let isWhole = found == large.bytes
      #expect(isWhole, "SHEAF_FAULT=\(point) while recovering")
      for name in ["open", "spilled", "large"] { unlink("\(folder)/\(name)") }
      for line in try worker.judge() { Issue.record("SHEAF_FAULT=\(point) while recovering: \(line)") }
      try library.unmount()
      #expect(try library.check() == [], "SHEAF_FAULT=\(point) while recovering")
      try library.tearDown()
    }
  }

  private func run(_ fault: String) throws {
    for line in try problems(of: fault) { Issue.record("\(line)") }
  }

  /// Does the exercise in a new library, with the fault in it; what is wrong with what is left.
  private func problems(of fault: String) throws -> [String] {
    try withTemporaryFolder { records in
      let library = try MountedLibrary()
      defer { library.breakMount() }
      let wrong = try exercise(library, "\(records.path)/record", fault)
      try library.tearDown()
      return wrong.map { "SHEAF_FAULT=\(fault): \($0)" }
    }
  }

  private func exercise(_ library: MountedLibrary, _ record: String, _ fault: String) throws -> [String] {
    var wrong: [String] = []
    let mounted = try library.tryMount(environment: ["SHEAF_FAULT": fault])
    if mounted.status != 0 || library.server == nil {
      // The fault came while the library was being made: what is there can be mounted.
      library.breakMount()
      try library.mount()
      return try library.check()
    }
    let folder = "\(library.documents)/work"
    let worker = Worker(folder: folder, record: record)
    let made = mkdir(folder, 0o755) == 0
    if made {
      let actions = Self.exercise + (Self.isPatient(fault) ? Self.patience : [])
      try worker.perform(actions.map { $0.naming(library.library) })
      // What is settled when the program has ended comes soon after.
      if fault.hasSuffix(":kill:1") { try? eventually("the fault", within: .seconds(2)) { library.server == nil } }
    }
    if library.server == nil {
      library.breakMount()
      try library.mount()
    } else if fault.hasSuffix(":kill:1"), !Self.elsewhere.contains(where: fault.hasPrefix) {
      wrong.append("the exercise never came to this point")
    } else if !fault.hasSuffix(":1") {
      // Still armed, where the exercise passes the point less often.
      try library.killServer()
      library.breakMount()
      try library.mount()
    }
    // The fault may have come at the very first folder: it is there or not.
    if !made, mkdir(folder, 0o755) != 0, errno != EEXIST { wrong.append("the folder cannot be made any more") }
    wrong += try worker.judge()
    // The mount goes on working, and the tree survives an orderly end.
    try Action.save("afterwards", Contents(seed: 9, count: 100)).perform(in: folder)
    if unlink("\(folder)/afterwards") != 0 { wrong.append("a document cannot be removed any more") }
    try library.unmount()
    wrong += try library.check()
    try library.mount()
    wrong += try worker.judge().map { "mounted again: \($0)" }
    return wrong
  }
}

extension Action {
  /// Commands without a path get the library's name.
  func naming(_ library: String) -> Action {
    if case .command(let words) = self, !words.contains(where: { $0.contains("%") }) {
      return .command(words + ["--library", library])
    }
    return self
  }
}
