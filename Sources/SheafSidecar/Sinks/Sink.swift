package import NIOCore
package import SheafClient
package import SheafModel

/// An event on its way, with its JSON as the library wrote it.
package struct Delivery: Sendable {
  package let event: Event
  package let json: ByteBuffer

  package init(event: Event, json: ByteBuffer) {
    self.event = event
    self.json = json
  }
}

/// A target of events.
///
/// A sink gets one delivery at a time, and the next one only after it took this one, which keeps the order.
package protocol Sink: Sendable {
  /// The account whose view of the events it gets; nil for the library's own view. A mount that root gave to a user of
  /// the machine shows that user's account in place of the library.
  var account: AccountHandle? { get }
  /// How many events may be delivered as one.
  var batch: Int { get }

  /// The view of the log to read, now that the library answers.
  func reader(_ client: SheafClient, _ info: ServiceInfo) async throws -> SheafClient.EventReader

  /// Says whose events it gets, where a hub tells those of one account alone.
  func reads(as account: AccountHandle)

  /// Delivers events, at least one; returning means that they arrived.
  ///
  /// - Throws: ``DeliveryFailure``; after any other error another attempt follows.
  func deliver(_ deliveries: [Delivery]) async throws

  /// Releases its resources; nothing is delivered afterwards.
  func close() async
}

extension Sink {
  package var batch: Int { 1 }
  package func close() async {}
  package func reads(as account: AccountHandle) {}
  package func reader(_ client: SheafClient, _ info: ServiceInfo) async throws -> SheafClient.EventReader {
    (account ?? info.account).map { .account(ItemAddress(account: $0, path: nil)) } ?? .library
  }
}

/// The reason why events did not arrive.
package struct DeliveryFailure: Error, Sendable, CustomStringConvertible {
  package enum Consequence: Sendable, Equatable {
    /// Another attempt, after that many seconds at the earliest.
    case retry(after: Double?)
    /// No further attempts until a person resumes the sink.
    case disable
    /// The reader of the sink, such as that of a pipe, has gone for good.
    case end
  }

  package let description: String
  package let consequence: Consequence

  package init(_ description: String, _ consequence: Consequence = .retry(after: nil)) {
    self.description = description.printable
    self.consequence = consequence
  }
}
