import HubKit
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

  /// Else whoever can change the folder has root's sidecar make or write any file.
  @Test(arguments: ["", "-wal", "-shm", "-journal", "-lock"])
  func aStateThatIsALinkIsRefused(_ suffix: String) async throws {
    try await withLibrary { _, program in
      let folder = try program.folder.folder("state")
      let other = "\(folder)/other"
      func expectRefusal(_ reason: String, _ isMade: Bool) throws {
        let output = try program.run(
          "--library", program.library, "--state", program.state, "--stdout", environment: ["SHEAF_LIBRARY": nil])
        #expect(output.status == 1 && output.errorText.contains("\(program.state)\(suffix): \(reason)"), "\(output)")
        #expect((access(other, F_OK) == 0) == isMade)
      }
      #expect(symlink(other, program.state + suffix) == 0)
      try expectRefusal("is a symbolic link", false)
      try "precious".write(toFile: other, atomically: false, encoding: .utf8)
      try expectRefusal("is a symbolic link", true)
      #expect(unlink(program.state + suffix) == 0 && link(other, program.state + suffix) == 0)
      try expectRefusal("has another name, a hard link", true)
      #expect(try String(contentsOfFile: other, encoding: .utf8) == "precious")
      #expect(unlink(program.state + suffix) == 0 && mkfifo(program.state + suffix, 0o600) == 0)
      try expectRefusal("is no file", true)
    }
  }

  /// The lock's file is written over when a sidecar starts.
  @Test func aLockThatIsSomebodysTextStaysAsItIs() async throws {
    try await withLibrary { _, program in
      _ = try program.folder.folder("state")
      let lock = program.state + "-lock"
      try "notes of mine".write(toFile: lock, atomically: false, encoding: .utf8)
      let output = try program.run("--library", program.library, "--state", program.state, "--stdout")
      #expect(output.status == 1 && output.errorText.contains("\(lock): is there, and is no lock"), "\(output)")
      #expect(try String(contentsOfFile: lock, encoding: .utf8) == "notes of mine")
    }
  }

  @Test(.enabled(if: TestUser.isRoot, "a folder of another user's needs root"))
  func rootKeepsItsStateInNoFolderOfAnother() async throws {
    let user = try TestUser.ordinary()
    try await withLibrary { _, program in
      let theirs = try program.folder.folder("theirs", for: user)
      for path in ["\(theirs)/sidecar.sqlite", "\(theirs)/below/it/sidecar.sqlite"] {
        let output = try program.run("--library", program.library, "--state", path, "--stdout")
        #expect(
          output.status == 1 && output.errorText.contains("is in a folder that others than root can change: \(theirs)"),
          "\(output)")
      }
      let made = try FileManager.default.contentsOfDirectory(atPath: theirs)
      #expect(made == [])
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

  /// A process whose library's disk is away answers, and breaks off what it is asked for.
  @Test func whoBreaksOffIsAskedEverMoreSlowly() throws {
    try withTemporaryFolder { folder in
      let program = SidecarProgram(folder: folder, library: "\(folder.path)/library.sqlite")
      let asked = "\(folder.path)/asked"
      let server = try BackgroundCommand(
        Command([
          "/usr/bin/python3", "-c",
          """
          import http.server, json, os, socketserver, sys, time
          class Handler(http.server.BaseHTTPRequestHandler):
              protocol_version = "HTTP/1.1"
              def do_GET(self):
                  if self.path == "/v1":
                      body = json.dumps({"api": 1, "library": sys.argv[1], "id": "1", "pid": os.getpid(), "mounts": True})
                      self.send_response(200)
                      self.send_header("content-length", str(len(body)))
                      self.end_headers()
                      self.wfile.write(body.encode())
                  else:
                      with open(sys.argv[2], "a") as asked: print(time.monotonic(), file=asked)
                      self.send_response(200)
                      self.send_header("transfer-encoding", "chunked")
                      self.end_headers()
                      self.wfile.write(b"5\\r\\nretry")
                      self.close_connection = True
              def address_string(self): return ""
              def log_message(self, *_): pass
          class Server(socketserver.ThreadingMixIn, socketserver.UnixStreamServer):
              daemon_threads = True
          Server(sys.argv[1] + "-socket", Handler).serve_forever()
          """, program.library, asked,
        ]))
      defer { server.end() }
      try eventually("the server") { FileManager.default.fileExists(atPath: program.library + "-socket") }
      let sidecar = try program.start("--stdout --from-now > /dev/null")
      defer { sidecar.end() }
      try eventually("five attempts", within: .seconds(60)) { program.lines("asked").count >= 5 }
      let times = program.lines("asked").compactMap(Double.init)
      // At once after the first, for that may just have ended; then a second, two, four.
      #expect(times[2] - times[1] >= 0.9 && times[3] - times[2] >= 1.9, "\(times)")
      #expect(program.log.components(separatedBy: "] delivery stopped: ").count == 2, "\(program.log)")
      #expect(program.log.split(separator: "\n").count < 8, "\(program.log)")
      try program.stop(sidecar)
    }
  }

  @Test func aMissingLibraryIsCalledMissing() throws {
    try withTemporaryFolder { folder in
      let program = SidecarProgram(folder: folder, library: "\(folder.path)/none.sqlite")
      let sidecar = try program.start("--stdout > /dev/null")
      defer { sidecar.end() }
      try eventually("what it waits for", within: .seconds(30)) {
        program.log.contains("none.sqlite: there is no such library")
      }
      try program.stop(sidecar)
      #expect(program.log.split(separator: "\n").count < 5, "\(program.log)")
    }
  }

  @Test func anAccountThatIsNotThereIsOneError() async throws {
    try await withLibrary { _, program in
      let sidecar = try program.start("--stdout --as nobody@example.com > /dev/null")
      defer { sidecar.end() }
      try eventually("the error", within: .seconds(30)) {
        try SheafProgram.run(["status", "--library", program.library]).text
          .contains("failing: account nobody@example.com")
      }
      try program.stop(sidecar)
      #expect(program.log.components(separatedBy: "is not in this library").count == 2, "\(program.log)")
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
