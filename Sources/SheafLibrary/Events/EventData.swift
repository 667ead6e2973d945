import Foundation
import SheafModel
import SheafStore

/// The `data` of an event as it is stored: without actor and share, which come from the row (docs/FORMAT.md).
struct EventData: Decodable {
  typealias Item = EventDetails.Item
  typealias Version = EventDetails.Version

  var item: Item
  var version: Version?
  var previousPath: String?
  var previousName: String?
  var participant: EventDetails.Participant?
  /// Items that `contents` names at most, and bytes of their paths; of more, ``contentCount`` tells how many there are.
  static let contentLimit = 100
  private static let contentBytes = 16_384

  /// The items that a folder took along, or that came back with it: the first ones, and their number. On a document
  /// they mean only that it came back.
  var contents: [Item]?
  var contentCount: Int64?
  var comment: String?
  /// Handle of the account that a comment mentions.
  var mentioned: String?
  /// The number of the event of the first joining between the deed and its event. Who joined by that one, or a later
  /// one, does not see it.
  var before: Int64?
  /// The shares that the item is in and that `previousPath` was in; columns of their own, and not of the JSON.
  var share: ShareMark?
  var previousShare: ShareMark?

  private enum CodingKeys: CodingKey {
    case item, version, previousPath, previousName, participant, contents, contentCount, comment, mentioned, before
  }

  /// Whether it names as many items as it may.
  var namesAll: Bool { (contents?.count ?? 0) >= Self.contentLimit }

  /// Tells of another item, with what that took along itself.
  mutating func include(_ other: EventData) {
    contentCount = (contentCount ?? 0) + 1 + (other.contentCount ?? 0)
    var named = contents ?? []
    if named.count >= Self.contentLimit { return }
    var room = Self.contentBytes - named.reduce(0) { $0 + $1.path.utf8.count }
    for item in [other.item] + (other.contents ?? []) {
      room -= item.path.utf8.count
      if room < 0 || named.count >= Self.contentLimit { break }
      named.append(item)
    }
    contents = named
  }

  /// The JSON, written by hand: every file that is made costs one, and JSONEncoder takes six times as long
  /// (docs/EXPERIMENTS.md, "Work in the daemon").
  var json: String {
    var text = #"{"item":"#
    // Room for most of them at once.
    text.reserveCapacity(256 + 2 * item.path.utf8.count)
    Self.append(item, to: &text)
    if let before { text += #","before":\#(before)"# }
    Self.append(#","comment":"#, comment, to: &text)
    Self.append(#","mentioned":"#, mentioned, to: &text)
    Self.append(#","previousName":"#, previousName, to: &text)
    Self.append(#","previousPath":"#, previousPath, to: &text)
    if let contents {
      text += #","contentCount":\#(contentCount ?? 0),"contents":["#
      for (index, item) in contents.enumerated() {
        if index > 0 { text += "," }
        Self.append(item, to: &text)
      }
      text += "]"
    }
    if let participant {
      Self.append(#","participant":{"acceptance":"#, participant.acceptance, to: &text)
      Self.append(#","handle":"#, participant.handle, to: &text)
      Self.append(#","name":"#, participant.name, to: &text)
      Self.append(#","permission":"#, participant.permission, to: &text)
      Self.append(#","role":"#, participant.role, to: &text)
      text += "}"
    }
    if let version {
      text += #","version":{"#
      if let base = version.base { text += #""base":\#(base),"# }
      Self.append(#""cause":"#, version.cause, to: &text)
      text += #","number":\#(version.number),"size":\#(version.size)}"#
    }
    text += "}"
    return text
  }

  private static func append(_ item: Item, to text: inout String) {
    append(#"{"id":"#, item.id, to: &text)
    append(#","kind":"#, item.kind, to: &text)
    append(#","name":"#, item.name, to: &text)
    append(#","path":"#, item.path, to: &text)
    text += "}"
  }

  /// Appends what comes before a value, and the value as a JSON string (RFC 8259, section 7); nothing where there is
  /// none.
  private static func append(_ key: String, _ value: String?, to text: inout String) {
    guard let value else { return }
    text += key
    text += "\""
    if isPlain(value) {
      text += value
    } else {
      for scalar in value.unicodeScalars {
        switch scalar {
        case "\"": text += #"\""#
        case "\\": text += #"\\"#
        case "\n": text += #"\n"#
        case "\t": text += #"\t"#
        case _ where scalar.value < 0x20:
          let hex = String(scalar.value, radix: 16)
          text += #"\u"# + String(repeating: "0", count: 4 - hex.count) + hex
        default: text.unicodeScalars.append(scalar)
        }
      }
    }
    text += "\""
  }

  /// Whether `value` needs no escapes.
  private static func isPlain(_ value: String) -> Bool {
    value.utf8.withContiguousStorageIfAvailable { bytes in
      for byte in bytes where byte < 0x20 || byte == 0x22 || byte == 0x5C { return false }
      return true
    } ?? false
  }
}

extension EventDetails.Version {
  init(_ version: VersionRow) {
    self.init(number: version.number, base: version.base, size: version.size, cause: version.cause.rawValue)
  }
}

extension EventData {
  /// The data of a row.
  ///
  /// - Throws: `corrupt` where the row has no JSON of an event.
  init(_ row: EventRow) throws(SheafError) {
    do {
      self = try JSONDecoder().decode(EventData.self, from: Data(row.data.utf8))
    } catch {
      throw SheafError(
        .corrupt, subject: "event \(row.number)", reason: "says something else than Sheaf writes",
        advice: "run sheaf check")
    }
  }
}
