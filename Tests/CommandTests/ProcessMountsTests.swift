import Foundation
import Logging
import SheafModel
import Synchronization
import Testing

@testable import SheafCommand
@testable import SheafLibrary

/// The mounts of a process, with file systems that are none.
@Suite struct ProcessMountsTests {
  /// What a test waits for: open once, it stays so.
  private actor Gate {
    private(set) var isOpen = false
    private var waiting: [CheckedContinuation<Void, Never>] = []

    func pass() async {
      if !isOpen { await withCheckedContinuation { waiting.append($0) } }
    }

    func open() {
      isOpen = true
      for continuation in waiting { continuation.resume() }
      waiting = []
    }
  }

  private final class FakeMount: LiveMount {
    let gone = Gate()
    let unmounts = Mutex<[Bool]>([])

    func unmount(lazy: Bool) async throws {
      unmounts.withLock { $0.append(lazy) }
      await gone.open()
    }

    func waitUntilGone() async { await gone.pass() }
  }

  private let logger = Logger(label: "test") { _ in SwiftLogNoOpLogHandler() }
  private let alice: AccountHandle

  init() throws { alice = try AccountHandle("alice@example.com") }

  private func withLibrary(_ body: (Library) async throws -> Void) async throws {
    let folder = FileManager.default.temporaryDirectory.appendingPathComponent("sheaf-\(UUID().uuidString)")
    defer { try? FileManager.default.removeItem(at: folder) }
    let library = try Library.open(LibraryLocation(path: folder.path + "/library.sqlite"))
    _ = try library.addAccount(alice, name: "Alice")
    try await body(library)
    try library.close()
  }

  /// Before its end a process that goes on syncs every two seconds.
  @Test func whatWasSavedIsDurableWhenAMountIsGone() async throws {
    try await withLibrary { library in
      let mounts = ProcessMounts(library: library, logger: logger) { _, _, _ in FakeMount() }
      for place in ["/one", "/two"] { _ = try await mounts.mount(MountRequest(mountpoint: place, account: alice)) }
      for (place, left) in [("/one", 1), ("/two", 0)] {
        _ = try library.make(
          .folder, library.documents(of: alice), Array(place.utf8.dropFirst()), mode: 0o755, .library)
        #expect(try await mounts.unmount(mountpoint: place, lazy: false) == left)
        #expect(library.store.isDurable)
      }
      await mounts.waitUntilEmpty()
    }
  }

  /// A backup that people look into keeps what retention has passed, whichever mounts come and go.
  @Test func onlyAMountThatCanBeWrittenHasHistoryThinned() async throws {
    try await withLibrary { library in
      let mounts = ProcessMounts(library: library, logger: logger) { _, _, _ in FakeMount() }
      func mount(_ place: String, readOnly: Bool) async throws {
        var request = MountRequest(mountpoint: place, account: alice)
        request.readOnly = readOnly
        _ = try await mounts.mount(request)
      }
      try await mount("/one", readOnly: true)
      try await mount("/two", readOnly: true)
      _ = try await mounts.unmount(mountpoint: "/one", lazy: false)
      try await mount("/one", readOnly: true)
      #expect(!library.maintenance.isTidyingPlanned)
      try await mount("/three", readOnly: false)
      #expect(library.maintenance.isTidyingPlanned)
      await mounts.end()
    }
  }

  @Test func aMountThatComesUpAtTheEndIsTakenDown() async throws {
    try await withLibrary { library in
      let (begun, answers, mount) = (Gate(), Gate(), FakeMount())
      let mounts = ProcessMounts(library: library, logger: logger) { _, request, _ in
        if request.mountpoint == "/first" { return FakeMount() }
        await begun.open()
        await answers.pass()
        return mount
      }
      _ = try await mounts.mount(MountRequest(mountpoint: "/first", account: alice))
      let late = Task { try await mounts.mount(MountRequest(mountpoint: "/late", account: alice)) }
      await begun.pass()
      let over = Gate()
      let end = Task {
        await mounts.end()
        await over.open()
      }
      // The first one goes at once, and with it the process's will to mount.
      while await !mounts.mounts().isEmpty { await Task.yield() }
      #expect(await !over.isOpen)
      await answers.open()
      await #expect { try await late.value } throws: { ($0 as? SheafError)?.kind == .unavailable }
      await end.value
      #expect(mount.unmounts.withLock { $0 } == [true])
      #expect(await mounts.mounts().isEmpty)
    }
  }
}
