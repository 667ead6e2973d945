import ConformanceKit
import Foundation
import Glibc
import HubKit
import MountKit
import SheafHub
import SheafModel
import SheafWire
import Testing

/// The program `sheaf-sidecar` beside the program `sheaf-hub`.
@Suite(.serialized) struct HubSidecarProgramTests {
  @Test func aMachineIsConnectedByALink() throws {
    let place = try HubPlace()
    _ = try place.serve()
    func expect(_ output: Command.Output, _ texts: String..., status: Int32 = 1) {
      #expect(output.status == status, "\(output)")
      for text in texts { #expect(output.errorText.contains(text), "\(text): \(output)") }
    }
    expect(
      try place.run("--hub", "--stdout", "--device", place.device), "is no device of a hub", "sheaf-sidecar connect")
    expect(try place.run("connect", "https://hub.example/enrol/x", "--device", place.device), "is no enrolment link")
    // The link as a pipe, and the file where it belongs.
    let connected = try place.run("connect", "-", input: place.link + "\n")
    #expect(connected.status == 0, "\(connected)")
    let file = "\(place.folder.path)/.local/state/sheaf/sidecar-device.json"
    #expect(
      connected.text == "This machine is a device of \(HubPlace.handle) at https://127.0.0.1:\(place.port), by \(file)."
    )
    expect(try place.run("connect", place.link), "makes this machine a device of \(HubPlace.handle)")
    expect(try place.run("connect", place.link, "--device", place.device), "used, too old", "account link")
    // Others must not have read it.
    #expect(chmod(file, 0o644) == 0)
    expect(try place.run("--hub", "--stdout"), "can be read or written by others (mode 644)", "remove the device")
    #expect(chmod(file, 0o600) == 0)
    for words in [["--library", "/x"], ["--as", HubPlace.handle], ["--account-webhooks"]] {
      let output = try Command(
        [try HubPlace.program, "--hub", "--stdout"] + words, environment: ["HOME": place.folder.path]
      ).run()
      #expect(output.status == 1, "\(words): \(output)")
    }
    try place.hub.stop()
  }

  /// A hub that is away is waited for, which is said once, and gone on with where it was.
  @Test func aHubThatIsAwayIsWaitedFor() async throws {
    let place = try HubPlace()
    var base = try place.serve()
    #expect(try place.run("connect", place.link, "--device", place.device).status == 0)
    let laptop = TestDevice()
    let link = try #require(EnrollmentLink(try place.hub.succeed("account", "link", HubPlace.handle)))
    let roots = try place.hub.certificate
    let first = try HubClient(base: base, roots: roots)
    let device = try await first.enroll(laptop, code: link.code)
    await first.close()
    let receiver = try Receiver(in: place.folder)
    let sidecar = try place.start(receiver)
    for number in 1...3 {
      let client = try HubClient(base: base, roots: roots)
      let token = try await client.begin(laptop, device)
      let sent = try await client.send(
        "POST", "/v1/sends", json: SendRequest(groups: [[.document("\(number)", "x", serial: Int64(number))]]),
        token: token)
      #expect(sent.status == 200)
      await client.close()
      let names = try receiver.requests(number, within: .seconds(90)).map { try $0.event().data.item.name }
      #expect(names == (1...number).map { "\($0)" })
      place.hub.kill()
      try eventually("it waits", within: .seconds(60)) {
        place.log.components(separatedBy: "waiting for the hub").count == number + 1
      }
      base = try place.serve()
      try eventually("it is there again", within: .seconds(90)) {
        place.log.components(separatedBy: "the hub is there").count == number + 1
      }
    }
    #expect(!place.log.contains("error"))
    // It ends when it is told to.
    kill(sidecar.process, SIGTERM)
    try sidecar.wait(limit: .seconds(60))
    receiver.kill()
    place.hub.kill()
  }

  private static var rounds: Int { Int(ProcessInfo.processInfo.environment["SHEAF_KILLS"] ?? "") ?? 8 }

  /// Hub, sidecar and receiver are killed at any moment. Every event arrives in its order, with one id, and is repeated
  /// only where the receiver's answer may have been lost.
  @Test func everyEventArrivesWhoeverIsKilled() async throws {
    let seed = ProcessInfo.processInfo.environment["SHEAF_SEED"].flatMap { UInt64($0) } ?? .random(in: 0 ... .max)
    var random = SeededRandom(seed: seed)
    let note = Comment(rawValue: "SHEAF_SEED=\(seed)")
    let place = try HubPlace()
    var base = try place.serve()
    #expect(try place.run("connect", place.link, "--device", place.device).status == 0)
    let laptop = TestDevice()
    let link = try #require(EnrollmentLink(try place.hub.succeed("account", "link", HubPlace.handle)))
    let roots = try place.hub.certificate
    var client = try HubClient(base: base, roots: roots)
    let device = try await client.enroll(laptop, code: link.code)
    var token = try await client.begin(laptop, device)
    let receiver = try Receiver(in: place.folder, ["--random", "\(seed % 1_000_000)"])
    var sidecar = try place.start(receiver)
    var serial: Int64 = 0
    for _ in 0..<Self.rounds {
      for _ in 0..<Int.random(in: 0..<30, using: &random) {
        serial += 1
        let answer: SendAnswer = try await client.send(
          "POST", "/v1/sends", json: SendRequest(groups: [[.document("\(serial)", "x", serial: serial)]]), token: token
        ).decode()
        #expect(answer.verdicts.map(\.outcome) == [.done], note)
      }
      switch Int.random(in: 0..<4, using: &random) {
      case 0:
        sidecar.end()
        sidecar = try place.start(receiver)
      case 1:
        await client.close()
        place.hub.kill()
        base = try place.serve()
        client = try HubClient(base: base, roots: roots)
        token = try await client.begin(laptop, device)
      case 2:
        receiver.kill()
        try receiver.restart(["--random", "\(random.next() % 1_000_000)"])
      default: break
      }
    }
    let log: LogPage<Event> = try await client.send("GET", "/v1/events?limit=1000", token: token).decode()
    #expect(log.events.map(\.data.item.name) == (1...serial).map { "\($0)" }, note)
    try eventually("the last event\n\(place.log)", within: .seconds(120)) {
      try receiver.requests().last(where: \.taken)?.event().sequence == serial
    }
    var taken: Int64 = 0
    for request in try receiver.requests() {
      let event = try request.event()
      #expect(event == log.events[Int(event.sequence) - 1] && request.id == event.id, note)
      // The next one comes only when this one was taken; the sidecar may not have heard that it was. None before it comes
      // again.
      #expect((taken...taken + 1).contains(event.sequence), note)
      if request.taken { taken = max(taken, event.sequence) }
    }
    #expect(taken == serial, note)
    sidecar.end()
    await client.close()
    place.hub.kill()
  }
}
