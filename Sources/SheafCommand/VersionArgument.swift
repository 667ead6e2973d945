import ArgumentParser
import SheafModel

/// A version as commands take it: its number, or its label.
struct VersionArgument: ExpressibleByArgument {
  private let text: String

  init?(argument: String) {
    if argument.isEmpty { return nil }
    text = argument
  }

  /// The version's number.
  ///
  /// - Throws: ``SheafError`` of kind `notFound` where the document has no version with this label.
  func number(of target: ItemTarget) async throws -> Int64 {
    if let number = Int64(text) { return number }
    let versions = try await target.client.versions(of: target.address)
    guard let labelled = versions.last(where: { $0.label == text }) else {
      throw SheafError(
        .notFound, subject: target.name, reason: "has no version with the label \"\(text.printable)\"",
        advice: "list them with: sheaf versions \(target.words)")
    }
    return labelled.number
  }
}
