import Foundation
import SheafModel
import Synchronization

/// The form in which the library's file holds what a replica remembers.
enum ReplicaJSON {
  static func encode(_ value: some Encodable) throws -> String {
    let encoder = JSONEncoder()
    encoder.outputFormatting = [.sortedKeys, .withoutEscapingSlashes]
    return String(decoding: try encoder.encode(value), as: UTF8.self)
  }

  /// - Throws: `corrupt`.
  static func decode<Value: Decodable>(_ text: String) throws -> Value {
    do {
      return try JSONDecoder().decode(Value.self, from: Data(text.utf8))
    } catch {
      throw SheafError(
        .corrupt, subject: "replica", reason: "a row says something else than a replica writes",
        advice: "run sheaf check")
    }
  }
}

/// The values of texts that were encoded or decoded lately: most rows of a replica are read soon after they were written,
/// and more than once, and decoding one takes longer than reading it.
final class ReplicaTexts: Sendable {
  /// Texts of a generation, of which there are two, and bytes of a text that is kept.
  private static let (limit, longest) = (512, 4_096)

  private struct Known {
    var young: [String: any Sendable] = [:]
    var old: [String: any Sendable] = [:]

    mutating func keep(_ value: any Sendable, as text: String) {
      guard text.utf8.count <= ReplicaTexts.longest else { return }
      if young.count >= ReplicaTexts.limit { (young, old) = ([:], young) }
      young[text] = value
    }
  }

  private let known = Mutex(Known())

  func encode<Value: Encodable & Sendable>(_ value: Value) throws -> String {
    let text = try ReplicaJSON.encode(value)
    known.withLock { $0.keep(value, as: text) }
    return text
  }

  /// - Throws: `corrupt`.
  func decode<Value: Decodable & Sendable>(_ text: String) throws -> Value {
    if let value = known.withLock({ $0.young[text] ?? $0.old[text] }) as? Value { return value }
    let value: Value = try ReplicaJSON.decode(text)
    known.withLock { $0.keep(value, as: text) }
    return value
  }
}
