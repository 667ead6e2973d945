import HubKit
import Foundation
import MountKit
import SheafModel
import Synchronization
import Testing

@testable import SheafSidecar

/// Webhooks at a real receiver that fails on schedule.
@Suite(.serialized) struct DeliveryTests {
  private static let secret = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"
  private static let other = "whsec_C2FVsBQIhrscChlQIMV+b5sSYspob7oD"

  private func withLibrary(_ body: (ServedLibrary) async throws -> Void) async throws {
    let served = try await ServedLibrary()
    try await body(served)
    try await served.end()
  }

  @Test func eventsArriveInOrderSigned() async throws {
    try await withLibrary { served in
      let receiver = try Receiver(in: served.folder, ["200", "204"])
      for number in 1...20 { try served.mkdir("\(number)") }
      let sink = try SinkConfiguration.webhook(receiver.url, secrets: [Self.secret, Self.other])
      try await served.delivering([sink]) {
        for number in 21...40 { try served.mkdir("\(number)") }
        let requests = try receiver.requests(40)
        #expect(try requests.map { try $0.event().data.item.name } == (1...40).map { "\($0)" })
        for request in requests {
          #expect(try request.event().id == request.id && request.type == "application/cloudevents+json")
          let signatures = try [Self.secret, Self.other].map { text in
            try WebhookSecret(text).signature(
              id: request.id, timestamp: try #require(Int64(request.timestamp)), body: Data(request.body.utf8))
          }
          #expect(request.signature == signatures.joined(separator: " "))
          #expect(abs(Date().timeIntervalSince1970 - (Double(request.timestamp) ?? 0)) < 60)
        }
      }
    }
  }

  @Test(arguments: ["500", "429:0", "close", "half", "redirect", "hang", "late:2"])
  func failuresAreTriedAgainInOrder(_ action: String) async throws {
    try await withLibrary { served in
      let receiver = try Receiver(in: served.folder, ["200", action, action, "200"])
      for number in 1...4 { try served.mkdir("\(number)") }
      try await served.delivering([try .webhook(receiver.url)]) {
        let requests = try receiver.requests(6)
        #expect(try requests.map { try $0.event().data.item.name } == ["1", "2", "2", "2", "3", "4"])
        #expect(Set(requests[1...3].map(\.id)).count == 1)
      }
      #expect(try served.deadLetters().isEmpty)
    }
  }

  @Test func retryAfterIsHonoured() async throws {
    try await withLibrary { served in
      let receiver = try Receiver(in: served.folder, ["429:2"])
      try served.mkdir("folder")
      try await served.delivering([try .webhook(receiver.url)]) {
        let requests = try receiver.requests(2)
        #expect(requests[1].time - requests[0].time >= 2)
      }
    }
  }

  @Test func anEndpointThatIsGoneIsLeftAloneUntilItIsResumed() async throws {
    try await withLibrary { served in
      let receiver = try Receiver(in: served.folder, ["410"])
      try served.mkdir("one")
      try await served.delivering([try .webhook(receiver.url)]) {
        _ = try receiver.requests(1)
        try eventually("the sink is disabled") { try served.record("webhook").disabled != nil }
        try served.mkdir("two")
      }
      try await served.delivering([try .webhook(receiver.url)]) {}
      #expect(try receiver.requests().count == 1)
      #expect(try served.stored { try $0.resume() } == ["webhook"])
      try await served.delivering([try .webhook(receiver.url)]) {
        let names = try receiver.requests(3).map { try $0.event().data.item.name }
        #expect(names == ["one", "one", "two"])
      }
    }
  }

  @Test func answersAreBounded() async throws {
    try await withLibrary { served in
      let receiver = try Receiver(in: served.folder, ["huge"])
      for name in ["one", "two"] { try served.mkdir(name) }
      try await served.delivering([try .webhook(receiver.url)]) {
        let names = try receiver.requests(2).map { try $0.event().data.item.name }
        #expect(names == ["one", "two"])
      }
    }
  }

  @Test func aFailingEndpointDelaysNoOther() async throws {
    try await withLibrary { served in
      let hanging = try Receiver(in: served.folder, name: "hanging", Array(repeating: "hang", count: 1000))
      let refusing = try Receiver(in: served.folder, name: "refusing")
      refusing.kill()
      let working = try Receiver(in: served.folder, name: "working")
      let sinks = try [(hanging, "hanging"), (refusing, "refusing"), (working, "working")].map { receiver, name in
        try SinkConfiguration.webhook(receiver.url, name: name)
      }
      try await served.delivering(sinks) {
        for number in 1...50 {
          let start = ContinuousClock.now
          try served.mkdir("\(number)")
          _ = try working.requests(number)
          #expect(ContinuousClock.now - start < .milliseconds(900), "it waited for others' time-outs")
        }
        #expect(try served.record("hanging").position == nil)
      }
    }
  }

  @Test func whatIsGivenUpCanBeSentAgain() async throws {
    try await withLibrary { served in
      let receiver = try Receiver(in: served.folder, ["500", "500", "500", "200"])
      for name in ["one", "two", "three"] { try served.mkdir(name) }
      var sink = try SinkConfiguration.webhook(receiver.url)
      sink.schedule.patience = 0
      try await served.delivering([sink]) { _ = try receiver.requests(3) }
      #expect(try served.deadLetters().map(\.sequence) == [1, 2, 3])
      #expect(try served.deadLetters().allSatisfy { $0.reason.contains("500") })
      #expect(try served.stored { try $0.retryDeadLetters() } == 3)
      try await served.delivering([sink]) {
        #expect(try receiver.requests(6).suffix(3).map { try $0.event().data.item.name } == ["one", "two", "three"])
        try eventually("the list is empty") { try served.deadLetters().isEmpty }
      }
    }
  }

  @Test func aDeadLetterThatFailsAgainHasTheOthersWait() async throws {
    try await withLibrary { served in
      let receiver = try Receiver(in: served.folder, ["500", "500", "500", "429:2", "410"])
      for name in ["one", "two", "three"] { try served.mkdir(name) }
      var sink = try SinkConfiguration.webhook(receiver.url)
      sink.schedule.patience = 0
      try await served.delivering([sink]) { _ = try receiver.requests(3) }
      #expect(try served.stored { try $0.retryDeadLetters() } == 3)
      try await served.delivering([sink]) {
        try eventually("the sink is disabled") { try served.record("webhook").disabled != nil }
      }
      let requests = try receiver.requests(5)
      let names = try requests[3...].map { try $0.event().data.item.name }
      #expect(names == ["one", "two"])
      #expect(requests[4].time - requests[3].time >= 2)
      // What was not taken because the endpoint was gone is sent when it is back.
      #expect(try served.stored { try $0.resume() } == ["webhook"])
      try await served.delivering([sink]) {
        #expect(try receiver.requests(7).suffix(2).map { try $0.event().data.item.name } == ["two", "three"])
        try eventually("one is left") { try served.deadLetters().map(\.sequence) == [1] }
      }
    }
  }

  @Test func aDeadLetterThatFailsAgainHoldsUpNoEvent() async throws {
    try await withLibrary { served in
      let receiver = try Receiver(in: served.folder, ["500", "500", "500"])
      for name in ["one", "two"] { try served.mkdir(name) }
      var sink = try SinkConfiguration.webhook(receiver.url)
      sink.schedule.patience = 0
      try await served.delivering([sink]) { _ = try receiver.requests(2) }
      #expect(try served.stored { try $0.retryDeadLetters() } == 2)
      // The second letter waits for an hour.
      (sink.schedule.base, sink.schedule.cap) = (7200, 7200)
      try await served.delivering([sink]) {
        _ = try receiver.requests(3)
        for number in 3...5 { try served.mkdir("\(number)") }
        let names = try receiver.requests(6).map { try $0.event().data.item.name }
        #expect(names == ["one", "two", "one", "3", "4", "5"])
        try eventually("they arrived") { try served.record("webhook").position == 5 }
      }
      let record = try served.record("webhook")
      #expect(record.failures == 0 && record.nextAttempt == nil && record.failingSince == nil)
      #expect(try served.deadLetters().map(\.sequence) == [1, 2])
    }
  }

  /// The command ends when it is told to, and leaves behind what does not.
  @Test func whatACommandStartedEndsWithIt() async throws {
    try await withLibrary { served in
      let file = "\(served.folder.path)/process"
      var sink = SinkConfiguration(
        name: "exec", target: .exec(command: "(trap '' TERM; exec sleep 4321) & echo $! >> \(file); wait"))
      (sink.timeout, sink.schedule.base, sink.schedule.cap) = (1, 0.01, 0.01)
      try served.mkdir("one")
      try await served.delivering([sink]) {
        try eventually("two time-outs", within: .seconds(30)) { try served.record("exec").failed >= 2 }
      }
      let processes = try String(contentsOfFile: file, encoding: .utf8).split(separator: "\n").map(String.init)
      #expect(processes.count >= 2)
      try eventually("the end of them all") {
        processes.allSatisfy { process in
          let name = try? String(contentsOfFile: "/proc/\(process)/comm", encoding: .utf8)
          let status = (try? String(contentsOfFile: "/proc/\(process)/stat", encoding: .utf8)) ?? ""
          return name != "sleep\n" || status.contains(") Z ")
        }
      }
    }
  }

  @Test func whatIsLostSkipsNothingThatIsKept() async throws {
    try await withLibrary { served in
      let receiver = try Receiver(in: served.folder)
      try served.mkdir("before")
      var sink = try SinkConfiguration.webhook(receiver.url)
      sink.beginsNow = true
      try await served.delivering([sink]) {
        try eventually("the beginning") { try served.record("webhook").position == 1 }
      }
      // As after a backup was restored.
      try served.stored { state in
        var record = try state.record(SinkKey(library: served.library.id, name: "webhook"))
        record.position = 1000
        try state.save(record, of: SinkKey(library: served.library.id, name: "webhook"))
      }
      try served.mkdir("after")
      try await served.delivering([sink]) {
        let names = try receiver.requests(2).map { try $0.event().data.item.name }
        #expect(names == ["before", "after"])
      }
    }
  }

  @Test func threeDaysPassAsTheyDo() async throws {
    try await withLibrary { served in
      let receiver = try Receiver(in: served.folder, Array(repeating: "500", count: 1000))
      try served.mkdir("one")
      var sink = try SinkConfiguration.webhook(receiver.url)
      sink.schedule = RetrySchedule()
      let clock = LeapingClock()
      let start = clock.now
      try await served.delivering([sink], clock: clock) {
        try eventually("the event is given up", within: .seconds(60)) { try !served.deadLetters().isEmpty }
      }
      let days = Double(clock.now.nanoseconds - start.nanoseconds) / 86_400e9
      #expect(days >= 3 && days < 3.2, "\(days) days")
      let attempts = try receiver.requests().count
      #expect((20...60).contains(attempts), "\(attempts) attempts")
    }
  }

  @Test func batchesAreArraysWithAnIdOfTheirOwn() async throws {
    try await withLibrary { served in
      let receiver = try Receiver(in: served.folder, ["500"])
      for number in 1...25 { try served.mkdir("\(number)") }
      var sink = try SinkConfiguration.webhook(receiver.url)
      sink.batch = 10
      try await served.delivering([sink]) {
        try eventually("all events") { try served.record("webhook").position == 25 }
      }
      let requests = try receiver.requests()
      #expect(requests[0].id == requests[1].id && requests[0].body == requests[1].body)
      let names = try requests.dropFirst().flatMap { try $0.events() }.map(\.data.item.name)
      #expect(names == (1...25).map { "\($0)" })
      #expect(requests.allSatisfy { $0.type == "application/cloudevents-batch+json" })
      #expect(try requests.allSatisfy { try $0.events().count <= 10 })
      #expect(Set(requests.map(\.id)).count == requests.count - 1)
    }
  }

  @Test func filtersAreOfTheSink() async throws {
    try await withLibrary { served in
      let receiver = try Receiver(in: served.folder)
      var sink = try SinkConfiguration.webhook(receiver.url)
      sink.filter = EventFilter(types: ["sheaf.persistence.*"], documents: ["b*"])
      for name in ["a", "b1", "c", "b2"] { try served.mkdir(name) }
      try await served.delivering([sink]) {
        #expect(try receiver.requests(2).map { try $0.event().data.item.name } == ["b1", "b2"])
        try eventually("the rest is passed over") { try served.record("webhook").position == 4 }
      }
    }
  }

  @Test func commandsGetTheEventOnTheirInput() async throws {
    try await withLibrary { served in
      let file = "\(served.folder.path)/events"
      var sink = SinkConfiguration(
        name: "exec",
        target: .exec(
          command: "cat >> \(file); echo $SHEAF_EVENT_TYPE >> \(file).types; test -e \(file).go || ! touch \(file).go"))
      sink.schedule.base = 0.01
      for name in ["one", "two"] { try served.mkdir(name) }
      try await served.delivering([sink]) {
        try eventually("both events") { try served.record("exec").position == 2 }
      }
      let lines = try String(contentsOfFile: file, encoding: .utf8).split(separator: "\n")
      let events = try lines.map { try JSONDecoder().decode(Event.self, from: Data($0.utf8)) }
      // The command failed the first time.
      #expect(events.map(\.data.item.name) == ["one", "one", "two"])
      #expect(try String(contentsOfFile: file + ".types", encoding: .utf8).hasPrefix("sheaf.persistence.created\n"))
    }
  }

  @Test func theLibraryMayComeLateAndGoAndComeBack() async throws {
    let served = try await ServedLibrary()
    let receiver = try Receiver(in: served.folder)
    let sink = try SinkConfiguration.webhook(receiver.url)
    try await served.service.stop(patience: .seconds(10))
    try served.library.close()
    var current: (ServedLibrary)?
    try await served.delivering([sink]) {
      for number in 1...3 {
        let next = try await ServedLibrary(again: served)
        try next.mkdir("\(number)")
        #expect(try receiver.requests(number).last?.event().data.item.name == "\(number)")
        if number < 3 {
          try await next.service.stop(patience: .seconds(10))
          try next.library.close()
        } else {
          current = next
        }
      }
    }
    try await current?.end()
  }
}

/// A clock on which waiting takes no time.
private final class LeapingClock: SidecarClock {
  private let time = Mutex(RealClock().now)

  var now: Timestamp { time.withLock { $0 } }

  func sleep(until end: Timestamp) async throws {
    try Task.checkCancellation()
    time.withLock { $0 = max($0, end) }
  }
}
