import Foundation
import Glibc
import MountKit
import SheafModel
import Testing

@testable import SheafSidecar

/// Webhooks of accounts with a real resolver, real addresses and real certificates: the script `internet` beside this.
@Suite(.serialized, .enabled(if: TestUser.isRoot, "an Internet of its own needs root"))
struct AddressGuardTests {
  /// What an endpoint of the script recorded.
  private struct Record: Decodable {
    let kind: String
    let address: String
    let host: String?
    let name: String?
    let path: String?
    let body: String?

    var isAtPublicAddress: Bool { address == "::ffff:93.184.216.34" }
  }

  /// A library whose account webhooks a sidecar serves on that Internet.
  private final class Given {
    let served: ServedLibrary
    let folder: String
    private var sidecar: BackgroundCommand?

    init() async throws {
      served = try await ServedLibrary()
      folder = try served.folder.folder("internet")
      // An authority, and what it says of good.test.
      try Command.shell(
        """
        openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes -days 2 -subj /CN=authority \\
          -keyout ca.key -out ca.pem
        openssl req -newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes -subj /CN=good.test -keyout good.key -out good.csr
        openssl x509 -req -in good.csr -CA ca.pem -CAkey ca.key -CAcreateserial -days 2 -out good.crt \\
          -extfile <(echo subjectAltName=DNS:good.test)
        cat good.crt good.key > good.pem
        """, in: folder
      ).succeed()
    }

    func start() throws {
      sidecar = try BackgroundCommand(
        .shell(
          """
          exec unshare --mount --net '\(Repository.path("Tests/SidecarTests/internet"))' '\(folder)' \\
            '\(try SidecarProgram.path())' --library '\(served.library.location.path)' \\
            --state '\(served.program.state)' --account-webhooks > '\(served.folder.path)/sidecar.log' 2>&1
          """))
    }

    /// Has an account of its own post to a URL; returns the sink's name.
    func register(_ url: String, for account: AccountHandle) throws -> String {
      "webhook " + (try served.library.addWebhook(for: account, WebhookRequest(url: url)).id)
    }

    func account(_ number: Int) throws -> AccountHandle {
      let handle = try AccountHandle("person\(number)@example.com")
      _ = try served.library.addAccount(handle, name: nil)
      return handle
    }

    /// Has something happen that the account sees.
    func mkdir(_ name: String, of account: AccountHandle) throws {
      let root = try served.library.documents(of: account)
      _ = try served.library.make(.folder, root, Array(name.utf8), mode: 0o755, .library)
    }

    func records() throws -> [Record] {
      let text = (try? String(contentsOfFile: "\(folder)/requests", encoding: .utf8)) ?? ""
      return try text.split(separator: "\n").map { try JSONDecoder().decode(Record.self, from: Data($0.utf8)) }
    }

    /// What the sidecar said of a sink's failures.
    func failures(_ sink: String) -> [Substring] {
      served.program.log.split(separator: "\n").filter { $0.contains("sink=\(sink)") && $0.contains("tried again") }
    }

    func begun(_ sinks: [String]) throws {
      try eventually("\(sinks.count) webhooks are served", within: .seconds(60)) {
        guard access(served.program.state, F_OK) == 0 else { return false }
        let store = try SidecarState(path: served.program.state)
        defer { try? store.close() }
        return try sinks.allSatisfy {
          try store.record(SinkKey(library: served.library.id, name: $0)).position != nil
        }
      }
    }

    func end() async throws {
      sidecar?.end()
      try await served.end()
    }
  }

  private func given(_ body: (Given) throws -> Void) async throws {
    let given = try await Given()
    do {
      try body(given)
    } catch {
      print(given.served.program.log)
      try? await given.end()
      throw error
    }
    try await given.end()
  }

  @Test func namesAndNumbersOfThisNetworkAreNotConnectedTo() async throws {
    try await given { given in
      let hosts = [
        "private.test", "mixed.test", "metadata.test", "zero.test", "mapped.test", "nat64.test", "unique-local.test",
        "hosts-file.test", "localhost", "10.0.0.5", "0.0.0.0", "0", "167772165", "0x0a000005", "0xa.0.0.5", "012.0.0.5",
        "10.5", "[::ffff:10.0.0.5]", "[::ffff:a00:5]", "[64:ff9b::a00:5]", "[::1]", "[fd00::7]", "[fe80::1%25lo]",
        "[2002:a00:5::1]", "PRIVATE.test", "private.test.",
      ]
      let people = try (0..<2).map { try given.account($0) }
      var sinks: [String: String] = [:]
      for (index, host) in hosts.enumerated() {
        sinks[host] = try given.register("http://\(host)/", for: people[index % people.count])
      }
      try given.start()
      try given.begun(Array(sinks.values))
      for person in people { try given.mkdir("news", of: person) }
      for (host, sink) in sinks {
        try eventually("\(host) is refused", within: .seconds(60)) { !given.failures(sink).isEmpty }
        #expect(given.failures(sink).allSatisfy { $0.contains("not public") }, "\(host): \(given.failures(sink))")
      }
      #expect(try given.records().isEmpty)
    }
  }

  @Test func theAddressThatWasCheckedIsTheOneConnectedTo() async throws {
    try await given { given in
      let person = try given.account(0)
      let sink = try given.register("http://rebinding.test/", for: person)
      try given.start()
      try given.begun([sink])
      try given.mkdir("one", of: person)
      try eventually("the first arrives", within: .seconds(60)) {
        try given.records().contains { $0.kind == "request" }
      }
      // From the second question on, the name is that of an address inside.
      try given.mkdir("two", of: person)
      try eventually("the second is refused", within: .seconds(60)) { !given.failures(sink).isEmpty }
      #expect(given.failures(sink).allSatisfy { $0.contains("10.0.0.5, which is not public") })
      #expect(try given.records().allSatisfy(\.isAtPublicAddress))
      #expect(try given.records().count(where: { $0.kind == "request" }) == 1)
    }
  }

  @Test func redirectsLeadNowhere() async throws {
    try await given { given in
      let person = try given.account(0)
      let sink = try given.register("http://redirect.test/hook", for: person)
      try given.start()
      try given.begun([sink])
      try given.mkdir("one", of: person)
      try eventually("it is a failure", within: .seconds(60)) { given.failures(sink).contains { $0.contains("307") } }
      #expect(try given.records().allSatisfy(\.isAtPublicAddress))
      #expect(try given.records().compactMap(\.path).allSatisfy { $0 == "/hook" })
    }
  }

  @Test func certificatesAreThoseOfTheName() async throws {
    try await given { given in
      let person = try given.account(0)
      let plain = try given.register("http://public.test/", for: person)
      let good = try given.register("https://good.test/", for: person)
      let wrong = try given.register("https://wrong.test/", for: person)
      let number = try given.register("https://93.184.216.34/", for: person)
      try given.start()
      try given.begun([plain, good, wrong, number])
      try given.mkdir("one", of: person)
      for sink in [wrong, number] {
        try eventually("a wrong certificate is refused", within: .seconds(60)) { !given.failures(sink).isEmpty }
        #expect(
          given.failures(sink).allSatisfy { $0.contains("CERTIFICATE_VERIFY_FAILED") || $0.contains("ertificate") },
          "\(given.failures(sink))")
      }
      try eventually("the right one is taken", within: .seconds(60)) {
        try Set(given.records().compactMap(\.host)) == ["public.test", "good.test"]
      }
      let requests = try given.records().filter { $0.kind == "request" }
      #expect(requests.count == 2 && requests.allSatisfy { $0.isAtPublicAddress && $0.path == "/" })
      #expect(requests.compactMap(\.name) == ["good.test"])
      #expect(
        try requests.allSatisfy { request in
          let event = try JSONDecoder().decode(Event.self, from: Data((request.body ?? "").utf8))
          return event.data.item.name == "one"
        })
    }
  }
}
