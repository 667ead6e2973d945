import Foundation
import SheafHubStore

/// An account in a file: its documents with all their versions and events. The people it shares with and its machines
/// are those of one hub, and not in it.
///
/// The file has lines of JSON: a head, a line for each row, and an end with the hash of all before it.
enum AccountFile {
  static let format = "sheaf-account"
  static let version = 6
  /// The longest line that is read: a chunk of 4 MiB is one of 6.
  static let longestLine = 16 * 1024 * 1024

  /// What is in it, in the order in which it is read again.
  static let tables: [StoredTable] = [
    "items", "names", "aliases", "versions", "authors", "placements", "version_changes", "purges", "labels", "labelled",
    "retentions", "events", "epochs", "chunks", "chunk_bytes",
  ].compactMap { name in HubTables.all.first { $0.name == name } }

  struct Head: Codable, Sendable {
    let format: String
    let version: Int
    let handle: String
    let name: String?
    let zone: String
    let quota: Int64?
    let number: Int64
    let horizon: Int64
    let events: Int64
    /// Of the zone when it was exported: 16 bytes.
    let epoch: Data?
    let exported: String
    /// The columns of each table.
    let tables: [String: [String]]
  }

  struct Row: Codable, Sendable {
    let table: String
    let values: [Value]
  }

  struct End: Codable, Sendable {
    let rows: Int
    let sha256: String
  }

  /// A value of a row: null, a number, a text, or bytes as `{"base64": "…"}`.
  struct Value: Codable, Sendable {
    let value: SQLValue

    private enum CodingKeys: String, CodingKey { case base64 }

    init(_ value: SQLValue) { self.value = value }

    init(from decoder: any Decoder) throws {
      if let container = try? decoder.container(keyedBy: CodingKeys.self) {
        value = .blob([UInt8](try container.decode(Data.self, forKey: .base64)))
        return
      }
      let container = try decoder.singleValueContainer()
      if container.decodeNil() {
        value = .null
      } else if let number = try? container.decode(Int64.self) {
        value = .integer(number)
      } else {
        value = .text(try container.decode(String.self))
      }
    }

    func encode(to encoder: any Encoder) throws {
      if case .blob(let bytes) = value {
        var container = encoder.container(keyedBy: CodingKeys.self)
        return try container.encode(Data(bytes), forKey: .base64)
      }
      var container = encoder.singleValueContainer()
      switch value {
      case .integer(let number): try container.encode(number)
      case .text(let text): try container.encode(text)
      case .null, .blob: try container.encodeNil()
      }
    }
  }
}

/// What is in an account's file.
package struct AccountFileFacts: Hashable, Sendable, Codable {
  package let handle: String
  package let zone: String
  package let rows: Int
  /// Bytes of contents.
  package let bytes: Int64
}
