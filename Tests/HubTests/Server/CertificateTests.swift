import Crypto
import Foundation
import HubKit
import Logging
import MountKit
import SheafHub
import SheafModel
import SheafWire
import Testing

/// TLS with certificates that are made, and renewed.
@Suite struct CertificateTests {
  private static let names = ["127.0.0.1:1", "[::1]:1", "hub.example"]
  private static let logger = Logger(label: "test") { _ in SwiftLogNoOpLogHandler() }

  private func make() throws -> (certificate: String, key: String) {
    try HubCertificate.make(for: try Self.names.map { try HubAddress($0) }, now: HubClock.system.now)
  }

  /// A fingerprint is what curl and others pin: SHA-256 of the public key's SubjectPublicKeyInfo.
  @Test func theFingerprintIsThatOfThePublicKey() throws {
    let made = try make()
    let key = try P256.Signing.PrivateKey(pemRepresentation: made.key)
    let hash = Data(SHA256.hash(data: key.publicKey.derRepresentation)).base64EncodedString()
    let text = hash.replacing("+", with: "-").replacing("/", with: "_").replacing("=", with: "")
    #expect(try HubCertificate.fingerprint(pem: made.certificate) == text)
    #expect(throws: SheafError.self) { try HubCertificate.fingerprint(pem: made.key) }
    #expect(throws: SheafError.self) { try HubCertificate.fingerprint(pem: "") }
  }

  @Test func aRenewedCertificateIsServedWithoutARestart() async throws {
    try await StoreEngine.sqlite.withDatabase { database in
      let folder = try TemporaryFolder()
      defer { try? folder.remove() }
      let (certificate, key) = ("\(folder.path)/certificate.pem", "\(folder.path)/key.pem")
      func write(_ text: String, to path: String) throws {
        try text.write(toFile: path + ".new", atomically: false, encoding: .utf8)
        guard rename(path + ".new", path) == 0 else { throw Command.Failure(description: "rename \(path)") }
      }
      let (first, second) = (try make(), try make())
      try write(first.certificate, to: certificate)
      try write(first.key, to: key)
      let hub = try await TestHub(database, address: "127.0.0.1:0")
      let server = try HubServer(
        hub: hub.hub, listen: try ListenAddress("127.0.0.1:0"),
        certificate: try CertificateFiles(certificate: certificate, key: key, logger: Self.logger),
        logger: Self.logger)
      try await server.start()
      let base = "https://\(hub.hub.addresses.first?.description ?? "")"
      /// Whether a new client that trusts one certificate is served.
      func isServed(_ roots: String) async throws -> Bool {
        let client = try HubClient(base: base, roots: roots)
        let answer = try? await client.send("GET", "/v1")
        await client.close()
        return answer?.status == 200
      }
      let result = await Result {
        #expect(try await isServed(first.certificate))
        #expect(try await !isServed(second.certificate))
        // A client that is connected stays so.
        let connected = try HubClient(base: base, roots: first.certificate)
        #expect(try await connected.send("GET", "/v1").status == 200)
        // Half of the renewal: the key is not the certificate's yet.
        try write(second.certificate, to: certificate)
        #expect(try await isServed(first.certificate))
        try write(second.key, to: key)
        #expect(try await isServed(second.certificate))
        #expect(try await !isServed(first.certificate))
        #expect(try await connected.send("GET", "/v1").status == 200)
        await connected.close()
        // Nonsense and a missing file leave the pair before in use.
        try write("nonsense", to: certificate)
        #expect(try await isServed(second.certificate))
        unlink(key)
        #expect(try await isServed(second.certificate))
      }
      await server.stop()
      try result.get()
    }
  }

  @Test func unusableFilesAreRefusedAtTheStart() throws {
    try withTemporaryFolder { folder in
      let (certificate, key) = ("\(folder.path)/certificate.pem", "\(folder.path)/key.pem")
      func isRefused() -> Bool {
        (try? CertificateFiles(certificate: certificate, key: key, logger: Self.logger)) == nil
      }
      #expect(isRefused())
      let (first, second) = (try make(), try make())
      try first.certificate.write(toFile: certificate, atomically: true, encoding: .utf8)
      try second.key.write(toFile: key, atomically: true, encoding: .utf8)
      #expect(isRefused())
      try first.key.write(toFile: key, atomically: true, encoding: .utf8)
      #expect(!isRefused())
    }
  }
}
