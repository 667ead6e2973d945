import Foundation
import Glibc
import MountKit
import SheafModel
import Testing

@testable import SheafSidecar

/// What the program does before it delivers: it hides secrets, and is there for those who signal to it.
@Suite(.serialized) struct SidecarStartTests {
  @Test func secretsAreInNoLogAndNoCommandsEnvironment() async throws {
    try await withLibrary { served, program in
      let receiver = try Receiver(in: served.folder, Array(repeating: "500", count: 100))
      let url = "http://user:passphrase@127.0.0.1:\(receiver.port)/path-of-its-own?token=TOPSECRET"
      let variables = "\(served.folder.path)/variables"
      try served.mkdir("one")
      let sidecar = try program.start(
        "--webhook '\(url)' --exec 'env > \(variables)'",
        environment: ["SHEAF_WEBHOOK_SECRET": "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"])
      defer { sidecar.end() }
      #expect(try receiver.requests(1)[0].signature != nil)
      var told = ""
      try eventually("the state of delivery", within: .seconds(30)) {
        let metrics = try Command([
          "curl", "--silent", "--unix-socket", program.library + "-socket", "http://sheaf/v1/metrics",
        ]).run().text
        told = try SheafProgram.run(["status", "--library", program.library]).text + metrics
        return told.contains("failing: 500") && told.contains("sheaf_sink_failures_total{")
      }
      try eventually("the command", within: .seconds(30)) {
        try String(contentsOfFile: variables, encoding: .utf8).contains("SHEAF_EVENT_ID=")
      }
      let environment = try String(contentsOfFile: variables, encoding: .utf8)
      #expect(!environment.contains("whsec_") && !environment.contains("SHEAF_WEBHOOK_SECRET"), "\(environment)")
      for text in [told, program.log] {
        #expect(text.contains("webhook http://127.0.0.1:\(receiver.port) ("), "\(text)")
        for secret in ["user", "passphrase", "path-of-its-own", "TOPSECRET"] {
          #expect(!text.contains(secret), "\(text)")
        }
      }
      // Events tell what documents are called.
      for suffix in ["", "-wal", "-shm"] {
        var status = stat()
        #expect(stat(program.state + suffix, &status) == 0 && status.st_mode & 0o777 == 0o600, "\(suffix)")
      }
      try program.stop(sidecar)
      receiver.kill()
    }
  }

  @Test func aSinkThatBoreItsURLGoesOnWhereItWas() async throws {
    try await withLibrary { served, program in
      let receiver = try Receiver(in: served.folder)
      for name in ["one", "two"] { try served.mkdir(name) }
      _ = try served.folder.folder("state")
      let former = SinkKey(library: served.library.id, name: "webhook \(receiver.url)")
      let name = SinkConfiguration(webhook: receiver.url, secrets: []).name
      let store = try SidecarState(path: program.state)
      var record = SidecarState.Record()
      record.position = 1
      let letter = DeadLetter(sink: former.name, sequence: 1, event: "{}", reason: "500", time: RealClock().now)
      try store.save(record, of: former, dead: [letter])
      try store.close()
      let sidecar = try program.start("--webhook \(receiver.url)")
      defer { sidecar.end() }
      #expect(try receiver.requests(1)[0].event().data.item.name == "two")
      try program.stop(sidecar)
      #expect(try program.run("dead-letters", "--state", program.state).text.contains("  \(name)  event 1"))
      let after = try SidecarState(path: program.state)
      defer { try? after.close() }
      #expect(try after.record(former).isNew)
      #expect(try after.record(SinkKey(library: served.library.id, name: name)).position == 2)
      receiver.kill()
    }
  }

  @Test func itMayBeSignalledToAsSoonAsItHasTheLock() async throws {
    try await withLibrary { served, program in
      for round in 0..<8 {
        let state = "\(served.folder.path)/state-\(round)"
        let sidecar = try BackgroundCommand(
          .shell(
            """
            exec '\(try SidecarProgram.path())' --library '\(program.library)' --state '\(state)' --stdout > /dev/null \
              2>> '\(served.folder.path)/sidecar.log'
            """))
        defer { sidecar.end() }
        let deadline = ContinuousClock.now + .seconds(30)
        // As fast as can be: the process does not take long from there.
        while try owner(of: state).map({ kill($0, SIGHUP) }) != 0 { try #require(ContinuousClock.now < deadline) }
        try eventually("it runs", within: .seconds(30)) {
          program.log.components(separatedBy: "] delivering").count == round + 2
        }
        try program.stop(sidecar)
      }
    }
  }

  /// The process that says in the lock's file that it has it.
  private func owner(of state: String) throws -> Int32? {
    guard let text = try? String(contentsOfFile: state + "-lock", encoding: .utf8), text.hasSuffix("\n") else {
      return nil
    }
    return Int32(text.dropLast())
  }
}
