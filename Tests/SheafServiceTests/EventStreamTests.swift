import Foundation
import Logging
import SheafClient
import SheafLibrary
import SheafModel
import SheafService
import Testing

/// The event log through the API.
@Suite struct EventStreamTests {
  private struct Served {
    let library: Library
    let service: SheafService
    let client: SheafClient
    let account: AccountHandle
    let folder: URL

    init(_ folder: URL = FileManager.default.temporaryDirectory.appendingPathComponent("sheaf-\(UUID().uuidString)"))
      async throws
    {
      self.folder = folder
      let location = LibraryLocation(path: folder.path + "/library.sqlite")
      library = try Library.open(location)
      account = try AccountHandle("alice@example.com")
      if try library.accounts().isEmpty { _ = try library.addAccount(account, name: "Alice") }
      service = try SheafService(library: library, mounts: nil, logger: Logger(label: "test"))
      try await service.start()
      client = try SheafClient(socket: location.socketPath, library: location.path, keepsConnections: false)
    }

    func mkdir(_ name: String) throws {
      _ = try library.make(.folder, library.documents(of: account), Array(name.utf8), mode: 0o755, .library)
    }

    func end() async throws {
      await client.shutdown()
      try await service.stop(patience: .seconds(60))
      try library.close()
    }
  }

  private func nextEvent(_ stream: inout EventStream) async throws -> Event? {
    while let element = try await stream.next() {
      if case .event(let event, _) = element { return event }
    }
    return nil
  }

  @Test func aStreamTellsWhatWasAndWhatComes() async throws {
    let served = try await Served()
    for number in 1...3 { try served.mkdir("folder \(number)") }
    var stream = try await served.client.follow(.library, after: 1)
    #expect(try await nextEvent(&stream)?.sequence == 2)
    #expect(try await nextEvent(&stream)?.sequence == 3)
    try served.mkdir("later")
    let later = try await nextEvent(&stream)
    #expect(later?.sequence == 4 && later?.data.item.name == "later")
    try await served.end()
    try FileManager.default.removeItem(at: served.folder)
  }

  @Test func whoSeesNothingIsToldHowFarTheLogIs() async throws {
    let served = try await Served()
    let bob = try AccountHandle("bob@example.com")
    _ = try served.library.addAccount(bob, name: nil)
    try served.mkdir("folder")
    var stream = try await served.client.follow(.account(ItemAddress(account: bob, path: nil)), after: nil)
    var position: Int64 = 0
    while position == 0, let element = try await stream.next() {
      if case .position(let number) = element { position = number }
      if case .event(let event, _) = element { Issue.record("Bob sees \(event)") }
    }
    #expect(position == 1)
    try await served.end()
    try FileManager.default.removeItem(at: served.folder)
  }

  /// What an account cannot see does not wake its streams: many of them cost who saves nothing.
  @Test func newsWakeThoseAloneWhoMaySeeThem() async throws {
    let served = try await Served()
    let bob = try AccountHandle("bob@example.com")
    _ = try served.library.addAccount(bob, name: nil)
    func wakeUps() async throws -> Double? {
      let metrics = try PrometheusText(try await served.client.metrics())
      return metrics.samples.first { $0.name == "sheaf_event_stream_wakeups_total" }?.value
    }
    func follow(_ account: AccountHandle) async throws -> EventStream {
      var stream = try await served.client.follow(.account(ItemAddress(account: account, path: nil)), after: nil)
      // From here on it waits: what it was to be told first came.
      while let element = try await stream.next() { if case .position = element { break } }
      return stream
    }
    try served.mkdir("first")
    let bobs = try await follow(bob)
    let before = try #require(try await wakeUps())
    try served.mkdir("private")
    #expect(try await wakeUps() == before)
    // What comes into a share concerns who takes part in it.
    let path = try ItemPath(account: served.account, "Documents/first")
    var change = ShareChange()
    change.with = [bob]
    _ = try served.library.share(path, change)
    let shared = try #require(try await wakeUps())
    #expect(shared > before)
    try served.mkdir("another")
    #expect(try await wakeUps() == shared)
    var alices = try await served.client.follow(
      .account(ItemAddress(account: served.account, path: nil)), after: served.library.lastEvent)
    let streams = try await PrometheusText(served.client.metrics()).samples.first { $0.name == "sheaf_event_streams" }
    #expect(streams?.value ?? 0 >= 1)
    try served.mkdir("seen")
    #expect(try await nextEvent(&alices)?.data.item.name == "seen")
    withExtendedLifetime(bobs) {}
    try await served.end()
    try FileManager.default.removeItem(at: served.folder)
  }

  @Test func aProcessThatEndsEndsItsStreamsAtOnce() async throws {
    let served = try await Served()
    let stream = try await served.client.follow(.library, after: nil)
    let reading = Task {
      var stream = stream
      while try await stream.next() != nil {}
    }
    let start = ContinuousClock.now
    try await served.service.stop(patience: .seconds(60))
    #expect(ContinuousClock.now - start < .seconds(10))
    try await reading.value
    await served.client.shutdown()
    try served.library.close()
    try FileManager.default.removeItem(at: served.folder)
  }

  @Test func whatIsGoneSaysHowToBeginAnew() async throws {
    #expect(SheafError.Kind.gone.statusCode == 410)
    let served = try await Served()
    let page = await failure { _ = try await served.client.events(.library, after: 7, limit: 1) }
    let stream = await failure { _ = try await served.client.follow(.library, after: 7) }
    for error in [page, stream] { #expect(error?.kind == .gone && error?.advice?.contains("begin anew") ?? false) }
    try await served.end()
    try FileManager.default.removeItem(at: served.folder)
  }

  private func failure(_ call: () async throws -> Void) async -> SheafError? {
    do {
      try await call()
      return nil
    } catch {
      return error as? SheafError
    }
  }

  @Test func noticesAreClearedForGood() async throws {
    let served = try await Served()
    try served.mkdir("folder")
    let address = ItemAddress(account: served.account, path: nil)
    let list = try await served.client.notices(address)
    #expect(list.notices.isEmpty && list.through == 1)
    try await served.client.clearNotices(address, through: list.through)
    let folder = ItemAddress(account: served.account, path: Array("Documents/folder".utf8))
    #expect(try await served.client.comment(folder, text: "Here.").comment == "Here.")
    #expect(try await served.client.latestEvents(folder, limit: 10).map(\.type) == [.created, .comment])
    try await served.end()
    try FileManager.default.removeItem(at: served.folder)
  }

  @Test func metricsAreThoseOfPrometheus() async throws {
    let served = try await Served()
    try served.mkdir("folder")
    var sink = SinkStatus(name: "a \"b\" \\ {c=\"d\"},\n", kind: "webhook")
    (sink.delivered, sink.failed) = (7, 3)
    try await served.client.report(SidecarReport(pid: getpid(), sinks: [sink]))
    let status = try await served.client.status()
    #expect(status.undelivered == 1 && status.sinks.map(\.delivered) == [7])
    let metrics = try PrometheusText(try await served.client.metrics())
    #expect(metrics.types["sheaf_events_total"] == "counter" && metrics.types["sheaf_sink_lag"] == "gauge")
    #expect(metrics.samples.contains(.init(name: "sheaf_events_total", labels: [:], value: 1)))
    #expect(metrics.types["sheaf_lock_long_holds_total"] == "counter")
    #expect(metrics.types["sheaf_lock_longest_hold_microseconds"] == "gauge")
    let labels = ["sink": sink.name, "kind": "webhook"]
    for (name, value) in [("deliveries_total", 7.0), ("failures_total", 3), ("lag", 1), ("disabled", 0)] {
      #expect(metrics.samples.contains(.init(name: "sheaf_sink_\(name)", labels: labels, value: value)), "\(name)")
    }
    try await served.end()
    try FileManager.default.removeItem(at: served.folder)
  }
}
