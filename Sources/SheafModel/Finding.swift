import Foundation

/// The conditions of `sheaf find`, all of which an item has to meet.
package struct FindRequest: Hashable, Sendable, Codable {
  /// The highest number of items in one answer.
  package static let longestAnswer = 100_000
  /// Characters of the longest text.
  package static let longestText = 1024

  /// Words that a name contains, or that begin words of the contents where those are searched.
  package let text: String?
  /// A pattern that the whole name has (``NamePattern``).
  package let name: String?
  /// The person who made the version, or the item without one, or who deleted it.
  package let by: AccountHandle?
  /// Not before then.
  package let since: Timestamp?
  /// Whether to find deleted items instead of present ones.
  package let deleted: Bool
  /// Each version, instead of each item.
  package let versions: Bool
  /// Only documents that have a conflict, and those that a hub put beside others.
  package let conflicts: Bool
  package let limit: Int

  package init(
    text: String? = nil, name: String? = nil, by: AccountHandle? = nil, since: Timestamp? = nil, deleted: Bool = false,
    versions: Bool = false, conflicts: Bool = false, limit: Int = longestAnswer
  ) throws(SheafError) {
    if let text {
      guard text.count <= Self.longestText, text.contains(where: { !$0.isWhitespace }) else {
        throw SheafError(
          .invalid, subject: "text \(text.prefix(80).description.printable)",
          reason: "is empty or longer than \(Self.longestText) characters", advice: "give words to look for")
      }
    }
    guard !(deleted && versions) else {
      throw SheafError(
        .invalid, subject: "deleted and versions", reason: "cannot be searched at once",
        advice: "look for the deleted item, and for its versions in .versions")
    }
    guard !(deleted && conflicts) else {
      throw SheafError(
        .invalid, subject: "deleted and conflicts", reason: "cannot be searched at once",
        advice: "look for the deleted item; a conflict shows once it is recovered")
    }
    guard (1...Self.longestAnswer).contains(limit) else {
      throw SheafError(.invalid, subject: "limit", reason: "is no number from 1 to \(Self.longestAnswer)")
    }
    (self.text, self.name, self.by, self.since) = (text, name, by, since)
    (self.deleted, self.versions, self.conflicts, self.limit) = (deleted, versions, conflicts, limit)
  }

  private enum CodingKeys: CodingKey { case text, name, by, since, deleted, versions, conflicts, limit }

  package init(from decoder: any Decoder) throws {
    let values = try decoder.container(keyedBy: CodingKeys.self)
    try self.init(
      text: values.decodeIfPresent(String.self, forKey: .text),
      name: values.decodeIfPresent(String.self, forKey: .name),
      by: values.decodeIfPresent(AccountHandle.self, forKey: .by),
      since: values.decodeIfPresent(Timestamp.self, forKey: .since),
      deleted: values.decodeIfPresent(Bool.self, forKey: .deleted) ?? false,
      versions: values.decodeIfPresent(Bool.self, forKey: .versions) ?? false,
      conflicts: values.decodeIfPresent(Bool.self, forKey: .conflicts) ?? false,
      limit: values.decodeIfPresent(Int.self, forKey: .limit) ?? Self.longestAnswer)
  }
}

/// Something that was found.
package struct FoundItem: Hashable, Sendable, Codable {
  /// UUID in lower case.
  package let id: String
  /// `document`, `folder` or `symlink`.
  package let kind: String
  package let path: String
  /// Bytes of a document, or of the version.
  @OrNull package var size: Int64?
  /// When the version was made, or the item without one, or when it was deleted.
  package let time: Timestamp
  /// The person who did that.
  package let by: AccountHandle
  /// The version: the current one of a document, or the one that was found.
  @OrNull package var version: Int64?
  @OrNull package var label: String?
  /// Of what is found for its conflict: whether a hub put it beside another document; nil for anything else.
  @OrNull package var beside: HubCopy?

  package init(
    id: String, kind: String, path: String, size: Int64?, time: Timestamp, by: AccountHandle, version: Int64?,
    label: String?, beside: HubCopy?
  ) {
    self.beside = beside
    (self.id, self.kind, self.path, self.time, self.by) = (id, kind, path, time, by)
    self.size = size
    self.version = version
    self.label = label
  }
}

/// The found items, by path.
package struct FoundItems: Sendable, Codable {
  package let items: [FoundItem]
  /// Whether there is more than the limit allowed.
  package let more: Bool
  /// How many documents may have the text, and have not been searched, since their contents are at a hub alone; nil from
  /// an older process.
  package let notSearched: Int?

  package init(items: [FoundItem], more: Bool, notSearched: Int) {
    self.notSearched = notSearched
    self.items = items
    self.more = more
  }
}

/// Words that names are searched for, whatever their case and their accents.
package struct NameWords: Sendable {
  private let words: [[UInt8]]

  package init(_ text: String) {
    words = Self.folded(Array(text.utf8)).split(whereSeparator: { $0 <= UInt8(ascii: " ") }).map(Array.init)
  }

  /// Whether a name contains all of them.
  package func areIn(_ name: [UInt8]) -> Bool {
    let folded = Self.folded(name)
    return words.allSatisfy { Self.contains(folded, $0) }
  }

  private static func folded(_ name: [UInt8]) -> [UInt8] {
    if name.allSatisfy({ $0 < 128 }) {
      return name.map { (UInt8(ascii: "A")...UInt8(ascii: "Z")).contains($0) ? $0 + 32 : $0 }
    }
    let text = String(decoding: name, as: UTF8.self)
    return Array(text.folding(options: [.caseInsensitive, .diacriticInsensitive], locale: nil).utf8)
  }

  private static func contains(_ bytes: [UInt8], _ word: [UInt8]) -> Bool {
    guard word.count <= bytes.count else { return false }
    return (0...(bytes.count - word.count)).contains { start in bytes[start...].starts(with: word) }
  }
}
