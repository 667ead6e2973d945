/// A durable record of a person's action: a CloudEvents 1.0 event (docs/REFERENCE.md, "Events").
package struct Event: Hashable, Sendable, Codable {
  /// Digits of `sequence` in JSON, so that its text has the order of the number (CloudEvents, "Sequence" extension).
  private static let sequenceDigits = 19

  /// UUID in lower case, the same wherever and however often the event appears.
  package let id: String
  /// Whose log it is in: the library, `sheaf://LIBRARY-ID`, or, of a connected account, the zone of the item's owner.
  package let source: String
  package let type: EventType
  /// Id of the item that the event is about.
  package let subject: String
  /// When the action was done.
  package let time: Timestamp
  /// Its number in that log, from 1, in the order of settlement. A hub numbers the events of each share anew for its
  /// members.
  package let sequence: Int64
  package var data: EventDetails
  /// Where it is in the log of the library that tells of it, to go on from: no part of the event. A library that has
  /// the logs of connected accounts besides its own counts them all together.
  package var position: Int64
  /// Whether it was done here and the hub does not have it yet, so that it has no number.
  package var isWaiting = false

  package init(
    id: String, source: String, type: EventType, subject: String, time: Timestamp, sequence: Int64, data: EventDetails
  ) {
    self.id = id
    self.source = source
    self.type = type
    self.subject = subject
    self.time = time
    self.sequence = sequence
    self.data = data
    position = sequence
  }

  private enum CodingKeys: CodingKey {
    case specversion, id, source, type, subject, time, sequence, waiting, datacontenttype, data
  }

  package init(from decoder: any Decoder) throws {
    let container = try decoder.container(keyedBy: CodingKeys.self)
    let text = try container.decode(String.self, forKey: .sequence)
    guard let number = Int64(text), number >= 0 else {
      throw SheafError(.invalid, subject: text.printable, reason: "is no sequence number")
    }
    self.init(
      id: try container.decode(String.self, forKey: .id), source: try container.decode(String.self, forKey: .source),
      type: try container.decode(EventType.self, forKey: .type),
      subject: try container.decode(String.self, forKey: .subject),
      time: try container.decode(Timestamp.self, forKey: .time), sequence: number,
      data: try container.decode(EventDetails.self, forKey: .data))
    isWaiting = try container.decodeIfPresent(Bool.self, forKey: .waiting) ?? false
  }

  package func encode(to encoder: any Encoder) throws {
    var container = encoder.container(keyedBy: CodingKeys.self)
    try container.encode("1.0", forKey: .specversion)
    try container.encode(id, forKey: .id)
    try container.encode(source, forKey: .source)
    try container.encode(type, forKey: .type)
    try container.encode(subject, forKey: .subject)
    try container.encode(time, forKey: .time)
    let digits = "\(sequence)"
    let zeros = String(repeating: "0", count: max(0, Self.sequenceDigits - digits.utf8.count))
    try container.encode(zeros + digits, forKey: .sequence)
    if isWaiting { try container.encode(true, forKey: .waiting) }
    try container.encode("application/json", forKey: .datacontenttype)
    try container.encode(data, forKey: .data)
  }
}

/// An event's `data`: `item`, `actor` and `share` always, the rest by type, and left out if the type does not have it.
package struct EventDetails: Hashable, Sendable, Codable {
  /// An item as it was then.
  package struct Item: Hashable, Sendable, Codable {
    package var id: String
    /// `document`, `folder` or `symlink`.
    package var kind: String
    package var name: String
    /// Relative to the owner's `Documents` for the owner; for everyone else it begins with the shared item's name.
    package var path: String

    package init(id: String, kind: String, name: String, path: String) {
      self.id = id
      self.kind = kind
      self.name = name
      self.path = path
    }
  }

  /// The share that the item was in.
  package struct Share: Hashable, Sendable, Codable {
    package var id: String
    package var url: String
    package var title: String

    package init(id: String, url: String, title: String) {
      self.id = id
      self.url = url
      self.title = title
    }
  }

  /// The version that was made.
  package struct Version: Hashable, Sendable, Codable {
    package var number: Int64
    /// Number of the version it was made from; nil for a first one.
    @OrNull package var base: Int64?
    /// Bytes.
    package var size: Int64
    package var cause: String

    package init(number: Int64, base: Int64?, size: Int64, cause: String) {
      self.number = number
      self.base = base
      self.size = size
      self.cause = cause
    }
  }

  /// The person whom an event is about, as they stood then.
  package struct Participant: Hashable, Sendable, Codable {
    package var handle: String
    package var name: String
    package var role: String
    package var permission: String
    package var acceptance: String

    package init(handle: String, name: String, role: String, permission: String, acceptance: String) {
      self.handle = handle
      self.name = name
      self.role = role
      self.permission = permission
      self.acceptance = acceptance
    }
  }

  /// The machine on which it was done, as the hub knows it.
  package struct Device: Hashable, Sendable, Codable {
    package var id: String
    package var name: String

    package init(id: String, name: String) {
      self.id = id
      self.name = name
    }
  }

  package var item: Item
  package var actor: Account
  /// Of what was done to connected accounts' items.
  package var device: Device?
  @OrNull package var share: Share? = nil
  package var version: Version?
  package var previousPath: String?
  package var previousName: String?
  package var participant: Participant?
  /// The first items that a folder took along when it was deleted or came back.
  package var contents: [Item]?
  /// How many items a folder took along; 0 for a document that came back.
  package var contentCount: Int64?
  /// Text of a comment.
  package var comment: String?
  /// The person whom a comment mentions.
  package var mentioned: Account?

  package init(item: Item, actor: Account) {
    self.item = item
    self.actor = actor
  }
}

/// Some of the log's events in order, and the position to go on from.
package struct EventPage: Hashable, Sendable, Codable {
  package var events: [Event]
  /// The sequence number after which to ask for more. It passes over events that the reader does not see.
  package var next: Int64
  /// The sequence number of the newest event in the log, even if the reader does not see it.
  package var last: Int64

  package init(events: [Event], next: Int64, last: Int64) {
    self.events = events
    self.next = next
    self.last = last
  }
}
