import CTestSystem
import ConformanceKit
import Foundation
import Glibc
import MountKit
import Testing

/// The power fails at random moments: what was synced is there, and of the rest a whole prefix of what happened.
@Suite(.serialized, .enabled(if: TestUser.isRoot, "a disk that loses its power needs root"))
struct PowerLossTests {
  /// Seconds after which what was closed is durable.
  private static let grace = 5.0

  @Test(arguments: ["commit=900", "commit=900,data=writeback", "commit=1"])
  func whatIsLeftIsAPrefixWithAllThatWasSynced(_ options: String) throws {
    print("SHEAF_SEED=\(crashSeed)")
    var random = SeededRandom(seed: crashSeed)
    for round in 0..<rounds(4) {
      // The kernel may write one file of a library and not another, at any time.
      let written = [nil, "-wal", "-changes", "-working"].randomElement(using: &random)!
      let spills = Bool.random(using: &random)
      let wrong = try cutPower(
        options, random.next(), actions: Int.random(in: 1...300, using: &random), writing: written, spilling: spills)
      let manner = "\(options), \(written ?? "nothing") written\(spills ? ", spilling" : "")"
      for line in wrong { Issue.record("SHEAF_SEED=\(crashSeed), round \(round), \(manner): \(line)") }
      guard wrong.isEmpty else { return }
    }
  }

  @Test func whatWasClosedIsDurableAfterFiveSeconds() throws {
    print("SHEAF_SEED=\(crashSeed)")
    // No fsync comes from the program: the library's own does it.
    let wrong = try cutPower("commit=900", crashSeed, actions: 60, waiting: Self.grace + 1, spilling: true)
    for line in wrong { Issue.record("SHEAF_SEED=\(crashSeed): \(line)") }
  }

  /// Of a new file, and of one that was there: the kernel handles these differently.
  @Test func whatIsWrittenSynchronouslyIsDurable() throws {
    try withLibraryOnADisk("commit=900") { disk, library, _ in
      let names = ["new", "new, once", "old", "old, once"]
      for name in names.suffix(2) { try Data("before".utf8).write(to: URL(fileURLWithPath: library.path(name))) }
      let files = names.map { name in
        open(library.path(name), O_WRONLY | O_CREAT | O_CLOEXEC | (name.hasSuffix("once") ? 0 : O_DSYNC), 0o644)
      }
      defer { for file in files { close(file) } }
      for (name, file) in zip(names, files) {
        let text = "of \(name)"
        let write = name.hasSuffix("once") ? sheaf_test_write_synchronously : Glibc.write
        #expect(write(file, text, text.utf8.count) == text.utf8.count, "\(name)")
      }
      let server = try #require(library.server)
      try disk.cutPower()
      try library.kill(server)
      library.breakMount()
      try powerUp(disk, library)
      for name in names { #expect(try String(contentsOfFile: library.path(name), encoding: .utf8) == "of \(name)") }
      #expect(try library.check() == [])
    }
  }

  @Test func unmountMakesEverythingDurable() throws {
    try withLibraryOnADisk("commit=900") { disk, library, folder in
      let worker = Worker(folder: library.documents, record: "\(folder.path)/record")
      try worker.start(seed: crashSeed, count: 200)
      try worker.end()
      try library.unmount()
      try disk.cutPower()
      try powerUp(disk, library)
      for line in try worker.judge() { Issue.record("SHEAF_SEED=\(crashSeed): \(line)") }
      #expect(try library.check() == [])
    }
  }

  /// One life of a library until its disk loses power; what is wrong with what is left.
  ///
  /// - Parameters:
  ///   - suffix: of the one of its files that the disk has whole by then.
  ///   - spills: whether documents of some size wait in the working file before they are stored.
  private func cutPower(
    _ options: String, _ seed: UInt64, actions: Int, waiting: Double = 0, writing suffix: String? = nil,
    spilling spills: Bool
  ) throws -> [String] {
    try withLibraryOnADisk(options, environment: spills ? ["SHEAF_SPILL_LIMIT": "20000"] : [:]) {
      disk, library, folder in
      let record = "\(folder.path)/record"
      let worker = Worker(folder: library.documents, record: record)
      defer { worker.stop() }
      try worker.start(seed: seed, count: waiting > 0 ? actions : 1_000_000)
      if waiting > 0 {
        try worker.end()
        Thread.sleep(forTimeInterval: waiting)
      } else {
        try eventually("\(actions) actions", within: .seconds(60)) { worker.lines >= 2 * actions }
      }
      let server = try #require(library.server)
      if let suffix {
        let file = open(library.library + suffix, O_RDONLY | O_CLOEXEC)
        // The working file is there only while it is needed.
        #expect(file >= 0 && fdatasync(file) == 0 || suffix == "-working")
        close(file)
      }
      // The moment lies between these two.
      let cut = Date().timeIntervalSince1970
      try disk.cutPower()
      let off = Date().timeIntervalSince1970
      try library.kill(server)
      library.breakMount()
      worker.stop()
      try powerUp(disk, library)
      let found = try FoundTree(library.documents)
      var wrong = prefix(try readRecord(record).filter { $0.begun <= off }, cut, found)
      wrong += try library.check().map { "check: \($0)" }
      return wrong
    }
  }

  /// Runs `body` with a mounted library on a disk of its own and a folder elsewhere; unmounts and takes all away.
  private func withLibraryOnADisk<Result>(
    _ options: String, environment: [String: String?] = [:],
    _ body: (LoopFileSystem, MountedLibrary, TemporaryFolder) throws -> Result
  ) throws -> Result {
    try withTemporaryFolder { folder in
      let disk = try LoopFileSystem(below: folder, mebibytes: 512, options: options)
      defer { disk.detach() }
      let library = try MountedLibrary(place: disk.mountpoint)
      defer { library.breakMount() }
      try library.mount(environment: environment)
      let result = try body(disk, library, folder)
      try library.unmount()
      try library.tearDown()
      try disk.unmount()
      return result
    }
  }

  /// Mounts a disk whose power was cut, and its library.
  private func powerUp(_ disk: LoopFileSystem, _ library: MountedLibrary) throws {
    // As long as a mount namespace that another test made has the disk mounted, mounting it gives the one without power.
    try eventually("the disk has power", within: .seconds(30)) {
      try disk.unmount()
      try disk.mount()
      let trial = open("\(disk.mountpoint)/power", O_WRONLY | O_CREAT | O_CLOEXEC, 0o600)
      guard trial >= 0 else { return false }
      close(trial)
      return unlink("\(disk.mountpoint)/power") == 0
    }
    try library.mount()
  }

  /// Nothing where the tree is what some prefix of the record leaves, one with everything that had to be durable.
  private func prefix(_ record: [RecordedAction], _ cut: Double, _ found: FoundTree) -> [String] {
    var judgement = Judgement(TreeModel())
    var nearest = ["no prefix is allowed"]
    let durable =
      (record.lastIndex { ($0.synced && $0.ended ?? cut < cut) || $0.ended ?? cut < cut - Self.grace }) ?? -1
    for (index, entry) in record.enumerated() {
      // Between the action's system calls.
      var underway = judgement
      var open = entry
      open.returned = nil
      _ = underway.follow([open])
      if index > durable || entry.returned == nil {
        let differences = underway.settle(found)
        if differences.isEmpty { return [] }
        if index == durable + 1 { nearest = differences }
      }
      _ = judgement.follow([entry])
    }
    var all = judgement
    let differences = all.settle(found)
    if differences.isEmpty { return [] }
    return ["\(record.count) actions, of which \(durable + 1) must be there; not a prefix:"]
      + (durable + 1 < record.count ? nearest : differences)
  }
}

extension RecordedAction {
  /// Whether the action ended with an fsync, after which all before it is durable too.
  fileprivate var synced: Bool {
    guard returned == 0 else { return false }
    if case .append = action { return true }
    return false
  }
}
