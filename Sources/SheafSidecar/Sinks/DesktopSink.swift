import Foundation
import OrderedCollections
package import SheafClient
import SheafHubClient
package import SheafModel
import Subprocess
import Synchronization

/// Shows an account the actions of others, by the Desktop Notifications Specification of freedesktop.org.
///
/// One notification tells of one item: the item's next event replaces it. gdbus(1), which every desktop has, speaks
/// D-Bus.
package final class DesktopSink: Sink {
  /// Items whose notifications are remembered.
  private static let memory = 64
  private static let timeout = Duration.seconds(10)

  /// A notification that may still be shown.
  private struct Shown {
    let id: UInt32
    let notice: Notice
  }

  package let account: AccountHandle?
  /// The account whose notices are shown.
  private let person = Mutex<AccountHandle?>(nil)
  /// By item, the one shown last at the end.
  private let shown = Mutex<OrderedDictionary<String, Shown>>([:])

  /// - Parameter account: Nil for the library's default account.
  package init(account: AccountHandle?) { self.account = account }

  package func reader(_ client: SheafClient, _ info: ServiceInfo) async throws -> SheafClient.EventReader {
    var handle = account ?? info.account
    if handle == nil { handle = try await client.settings().defaultAccount }
    person.withLock { $0 = handle }
    return .account(ItemAddress(account: handle, path: nil))
  }

  package func reads(as account: AccountHandle) { person.withLock { $0 = account } }

  package func deliver(_ deliveries: [Delivery]) async throws {
    for event in deliveries.map(\.event) where concerns(event) {
      let before = shown.withLock { $0[event.subject] }
      let account = person.withLock { $0 }
      // Everyone on the machine can read the arguments of gdbus (`/proc/PID/cmdline`).
      func telling(_ event: Event) -> Notice { Notice(event, for: account, tellsURL: false) }
      var notice = before?.notice ?? telling(event)
      if before != nil, !notice.absorb(event) { notice = telling(event) }
      let id = try await notify(notice, replacing: before?.id ?? 0)
      shown.withLock { shown in
        shown[event.subject] = nil
        shown[event.subject] = Shown(id: id, notice: notice)
        if shown.count > Self.memory { shown.removeFirst() }
      }
    }
  }

  /// Whether the account is told of an event: not of its own actions, and only once of a comment that mentions it.
  private func concerns(_ event: Event) -> Bool {
    guard let person = person.withLock({ $0 }), event.data.actor.handle != person else { return false }
    return event.type != .comment || !Mentions.handles(in: event.data.comment ?? "").contains(person)
  }

  /// Shows a notification; returns the id that the server gave it.
  private func notify(_ notice: Notice, replacing id: UInt32) async throws -> UInt32 {
    let arguments = [
      "call", "--session", "--dest", "org.freedesktop.Notifications", "--object-path",
      "/org/freedesktop/Notifications", "--method", "org.freedesktop.Notifications.Notify", "--", Self.text("Sheaf"),
      "uint32 \(id)", Self.text("folder-documents"), Self.text(notice.text), Self.text(Self.escaped(notice.item.path)),
      "@as []", "{'desktop-entry': <'sheaf'>}", "int32 -1",
    ]
    let answer: String
    do {
      answer = try await withTimeout(Self.timeout) {
        let result = try await run(
          .name("gdbus"), arguments: Arguments(arguments), output: .string(limit: 4096), error: .string(limit: 4096))
        guard result.terminationStatus.isSuccess else {
          throw DeliveryFailure("gdbus ended with \(result.terminationStatus): \(result.standardError)")
        }
        return result.standardOutput
      }
    } catch let failure as DeliveryFailure {
      throw failure
    } catch is TimedOut {
      throw DeliveryFailure("the notification server did not answer within \(Self.timeout)")
    } catch {
      throw DeliveryFailure("gdbus cannot be run (Debian: libglib2.0-bin): \(error)")
    }
    guard let match = answer.firstMatch(of: /uint32 (\d+)/), let number = UInt32(match.1) else {
      throw DeliveryFailure("the notification server answered \(answer)")
    }
    return number
  }

  /// A string in GVariant text format, without control characters.
  static func text(_ value: String) -> String {
    let escaped = value.printable.replacing("\\", with: "\\\\").replacing("'", with: "\\'")
    return "'\(escaped)'"
  }

  /// Text as the markup of a notification's body.
  private static func escaped(_ value: String) -> String {
    value.replacing("&", with: "&amp;").replacing("<", with: "&lt;").replacing(">", with: "&gt;")
  }
}
