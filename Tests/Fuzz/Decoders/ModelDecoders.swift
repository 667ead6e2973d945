import Foundation
import SheafModel

@testable import SheafLibrary

extension Decoder {
  /// The query of a request.
  static let queries = Decoder(name: "queries") { bytes in
    let text = String(decoding: bytes, as: UTF8.self)
    _ = try attempt { try QueryParameters(text) }
    try expect(PercentCoding.decode(PercentCoding.encode(bytes).utf8) == bytes, "percent-encoding loses something")
    let kinds: Set<SheafError.Kind> = [.corrupt, .invalid, .nameTooLong]
    guard let address = try attempt(allowing: kinds, { try ItemAddress(query: text) }) else { return }
    try expect(ItemAddress(query: address.query) == address, "an address is another one")
    guard let path = address.path, let account = address.account,
      let item = try attempt(allowing: [.invalid, .nameTooLong], { try ItemPath(account: account, bytes: path) })
    else { return }
    try expect(
      item.components.allSatisfy { !$0.isEmpty && $0.count <= 255 && $0 != [46, 46] }, "a component is no name")
    try expect(ItemPath(account: account, bytes: item.bytes) == item, "a path is another one")
  }

  /// What clients send: the first byte says what it is to be.
  static let bodies = Decoder(name: "bodies") { bytes in
    var input = Input(bytes)
    let read = bodyReaders[Int(input.byte()) % bodyReaders.count]
    try read(Data(input.all()))
  }

  private static let bodyReaders: [@Sendable (Data) throws -> Void] = [
    roundTrip(MountRequest.self), roundTrip(AccountRequest.self), roundTrip(LibrarySettings.self),
    roundTrip(SettingsChange.self),
    roundTrip(RestoreRequest.self), roundTrip(LabelRequest.self), roundTrip(RecoverRequest.self),
    roundTrip(PurgeRequest.self), roundTrip(BackupRequest.self), roundTrip(ShareChange.self),
    roundTrip(ParticipantChange.self), roundTrip(InviteRequest.self), roundTrip(LinkRequest.self),
    roundTrip(RequestAnswer.self), roundTrip(CommentRequest.self), roundTrip(WebhookRequest.self),
    roundTrip(SidecarReport.self), roundTrip(SheafError.self), roundTrip(Event.self), roundTrip(EventPage.self),
    { data in _ = try? JSONDecoder().decode(JobLine<EventPage>.self, from: data) },
  ]

  private static func roundTrip<Value: Codable & Equatable & Sendable>(
    _ type: Value.Type
  ) -> @Sendable (Data) throws -> Void {
    { data in
      guard let value = try? JSONDecoder().decode(type, from: data) else { return }
      let again = try JSONDecoder().decode(type, from: JSONEncoder().encode(value))
      try expect(again == value, "\(type) is another one")
    }
  }

  /// Data of events as the store has them.
  static let events = Decoder(name: "events") { bytes in
    guard let data = try? JSONDecoder().decode(EventData.self, from: Data(bytes)) else { return }
    let text = data.json
    let again = try JSONDecoder().decode(EventData.self, from: Data(text.utf8))
    try expect(again.json == text, "data of an event are others")
  }

  /// Handles, links, times and what else is a short text.
  static let handles = Decoder(name: "handles") { bytes in
    let text = String(decoding: bytes, as: UTF8.self)
    if let handle = try attempt({ try AccountHandle(text) }) {
      try expect(handle.description == text && !text.contains("/"), "a handle is another text")
    }
    if let token = try attempt({ try ShareURL(text).token }) {
      try expect(ShareURL(token.url(address: nil, library: "x")).token == token, "a token is another one")
      try expect((24...64).contains(token.text.utf8.count), "a token of \(token.text.utf8.count) characters")
    }
    if let time = Timestamp(rfc3339: text), (Timestamp(seconds: -1 << 33)...Timestamp(seconds: 1 << 33)).contains(time)
    {
      try expect(Timestamp(rfc3339: time.description) == time, "a time is another one")
    }
    let visible = text.printable
    try expect(visible.unicodeScalars.count <= 201 * 8, "an error of \(visible.count) characters")
    try expect(
      !visible.unicodeScalars.contains { $0.value < 32 || (127...159).contains($0.value) }, "a control character")
    try expect(Mentions.handles(in: text).count <= bytes.count / 4, "too many mentions")
  }
}
