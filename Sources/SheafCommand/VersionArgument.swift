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

extension ItemTarget {
  /// The version of a document that was current at a time.
  ///
  /// - Throws: ``SheafError`` of kind `invalid` for a time that is yet to come, and `notFound` where it has no version that
  ///   is as old.
  func version(at time: Timestamp) async throws -> Version {
    guard time.seconds <= Timestamp.now.seconds else {
      throw SheafError(
        .invalid, subject: Format.time(time), reason: "is yet to come", advice: "give a time that has passed")
    }
    let versions = try await client.versions(of: address)
    guard let version = versions.last(where: { $0.time <= time }) else {
      let first = versions.first.map { "its first version is of \(Format.time($0.time))" } ?? "it has no versions"
      throw SheafError(
        .notFound, subject: name, reason: "was not there at \(Format.time(time)): \(first)",
        advice: "list its versions with: sheaf versions \(words)")
    }
    return version
  }
}
