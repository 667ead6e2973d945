import Dispatch
import Foundation
import Glibc
package import Logging
import NIOSSL
import SheafModel
import Synchronization

/// The certificate and key of a server, in files that are read again when they change.
///
/// They are looked at as each connection begins. Where they cannot be read, or do not belong together since only one of
/// them has been replaced yet, the pair before stays in use.
package final class CertificateFiles: Sendable {
  private struct Stamp: Hashable {
    let device: UInt64
    let inode: UInt64
    let size: Int64
    let modified: Timestamp

    init?(_ path: String) {
      var status = stat()
      guard stat(path, &status) == 0 else { return nil }
      device = UInt64(status.st_dev)
      inode = UInt64(status.st_ino)
      size = Int64(status.st_size)
      modified = Timestamp(seconds: Int64(status.st_mtim.tv_sec), nanoseconds: Int64(status.st_mtim.tv_nsec))
    }
  }

  private struct State {
    var stamps: [Stamp?]
    var pair: Pair
  }

  private struct Pair {
    let chain: [NIOSSLCertificate]
    let key: NIOSSLPrivateKey

    var override: NIOSSLContextConfigurationOverride {
      var override = NIOSSLContextConfigurationOverride()
      override.certificateChain = chain.map { .certificate($0) }
      override.privateKey = .privateKey(key)
      return override
    }
  }

  private let certificate: String
  private let key: String
  private let logger: Logger
  private let reading = DispatchQueue(label: "sheaf.hub.certificate")
  private let state: Mutex<State>

  /// - Throws: ``SheafError`` if they cannot be used.
  package init(certificate: String, key: String, logger: Logger) throws {
    self.certificate = certificate
    self.key = key
    self.logger = logger
    let stamps = [Stamp(certificate), Stamp(key)]
    state = Mutex(State(stamps: stamps, pair: try Self.load(certificate, key)))
  }

  /// TLS 1.2 and up, for HTTP/1.1.
  func configuration() -> TLSConfiguration {
    let pair = state.withLock(\.pair)
    var configuration = TLSConfiguration.makeServerConfiguration(
      certificateChain: pair.chain.map { .certificate($0) }, privateKey: .privateKey(pair.key))
    configuration.minimumTLSVersion = .tlsv12
    configuration.applicationProtocols = ["http/1.1"]
    // Many clients do not answer the end of a connection. Nothing is lost without that: HTTP tells where a message ends.
    configuration.shutdownTimeout = .milliseconds(100)
    configuration.sslContextCallback = { [self] _, promise in
      if let pair = unchanged() { return promise.succeed(pair.override) }
      // Not on the connection's thread: there BoringSSL would take the failure of unusable files for the connection's.
      reading.async { promise.succeed(self.current().override) }
    }
    return configuration
  }

  /// Until when the certificate is valid that is served now.
  var end: Timestamp {
    Timestamp(seconds: Int64(current().chain.first?.notValidAfter ?? .max))
  }

  /// The pair in use; nil if the files have changed since they were read.
  private func unchanged() -> Pair? {
    state.withLock { $0.stamps == [Stamp(certificate), Stamp(key)] ? $0.pair : nil }
  }

  /// The pair that is good now.
  private func current() -> Pair {
    state.withLock { state in
      let stamps = [Stamp(certificate), Stamp(key)]
      guard stamps != state.stamps else { return state.pair }
      state.stamps = stamps
      do {
        state.pair = try Self.load(certificate, key)
        logger.notice("the certificate was read again")
      } catch {
        logger.warning("the certificate changed and cannot be used yet", metadata: ["reason": "\(error)"])
      }
      return state.pair
    }
  }

  private static func load(_ certificate: String, _ key: String) throws -> Pair {
    func attempt<Value>(_ path: String, _ trouble: String, _ body: () throws -> Value) throws -> Value {
      guard access(path, R_OK) == 0 else { throw SheafError(systemError: errno, subject: path.printable) }
      do {
        return try body()
      } catch {
        // What BoringSSL says names its functions.
        throw SheafError(.invalid, subject: path.printable, reason: trouble.printable)
      }
    }
    let chain = try attempt(certificate, "holds no certificate in the form PEM") {
      try NIOSSLCertificate.fromPEMFile(certificate)
    }
    let secret = try attempt(key, "holds no private key in the form PEM") {
      try NIOSSLPrivateKey(file: key, format: .pem)
    }
    // A context refuses a key that is not the certificate's.
    _ = try attempt(key, "cannot be used for TLS with the certificate in \(certificate): it is another one's key") {
      try NIOSSLContext(
        configuration: .makeServerConfiguration(
          certificateChain: chain.map { .certificate($0) }, privateKey: .privateKey(secret)))
    }
    return Pair(chain: chain, key: secret)
  }
}
