import Foundation
import Glibc
import NIOCore
import SheafHubClient
package import SheafModel
import Subprocess
import SystemPackage

/// Runs a command for each event, with the event's JSON on its standard input; exit status 0 means that it arrived.
package struct ExecSink: Sink {
  package let account: AccountHandle?
  private let command: String
  private let timeout: Duration

  /// - Parameter command: For `sh -c`, with `SHEAF_EVENT_ID` and `SHEAF_EVENT_TYPE` in its environment.
  package init(command: String, account: AccountHandle?, timeout: Duration) {
    self.command = command
    self.account = account
    self.timeout = timeout
  }

  package func deliver(_ deliveries: [Delivery]) async throws {
    for delivery in deliveries {
      let status: TerminationStatus
      do {
        let input = try Self.file(of: delivery.json)
        status = try await withTimeout(timeout) { [command] in
          var options = PlatformOptions()
          // All processes that the command starts end with it.
          options.processGroupID = 0
          options.teardownSequence = [.gracefulShutDown(toProcessGroup: true, allowedDurationToNextStep: .seconds(2))]
          var group: pid_t?
          // The teardown ends with the command, even if processes that it started have not ended.
          defer { if Task.isCancelled, let group { kill(-group, SIGKILL) } }
          return try await run(
            .path("/bin/sh"), arguments: ["-c", command],
            environment: .inherit.updating([
              "SHEAF_EVENT_ID": delivery.event.id, "SHEAF_EVENT_TYPE": delivery.event.type.rawValue,
            ]),
            platformOptions: options, input: .fileDescriptor(input, closeAfterSpawningProcess: true),
            output: .currentStandardError, error: .currentStandardError
          ) { group = $0.processIdentifier.value }.terminationStatus
        }
      } catch is TimedOut {
        throw DeliveryFailure("the command did not end within \(timeout)")
      } catch {
        throw DeliveryFailure("the command cannot be run: \(error)")
      }
      guard status.isSuccess else { throw DeliveryFailure("the command ended with \(status)") }
    }
  }

  /// A file in memory, without a name, that holds the event and a newline. Unlike a pipe it allows a command that reads
  /// nothing, and unlike a file on a disk it needs no free space.
  private static func file(of json: ByteBuffer) throws -> SystemPackage.FileDescriptor {
    let name = "/sheaf-event-\(UUID().uuidString)"
    let number = shm_open(name, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0o600)
    guard number >= 0 else { throw SystemPackage.Errno(rawValue: errno) }
    shm_unlink(name)
    let file = SystemPackage.FileDescriptor(rawValue: number)
    do {
      try file.writeAll(Array(json.readableBytesView) + [UInt8(ascii: "\n")])
      try file.seek(offset: 0, from: .start)
    } catch {
      try? file.close()
      throw error
    }
    return file
  }
}
