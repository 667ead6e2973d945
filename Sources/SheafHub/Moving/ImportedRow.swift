import Foundation
import SheafHubStore
import SheafModel
import SheafWire

/// Refuses rows of an account's file with what no device could have sent, and with numbers from which the hub could not
/// count on. What refers to other rows is checked when all are there (``ZoneCheck``).
enum ImportedRow {
  /// No number of the hub's gets as high: 2⁵³.
  static let highest: Int64 = 1 << 53
  /// Times of this hub and of others, in nanoseconds: until the year 2116.
  private static let times = 0...Int64(1) << 62

  /// - Throws: ``HubError`` of kind `invalid`.
  static func check(_ row: [SQLValue], of table: StoredTable) throws {
    let values = Dictionary(uniqueKeysWithValues: zip(table.columns, row))
    for (column, value) in values {
      guard case .integer(let number) = value else { continue }
      switch column {
      // Clocks of devices may show anything.
      case "mtime", "time": break
      case "arrived", "made", "placed", "lease": try require(times.contains(number), "a time")
      case "deleted" where table.name == "items": try require(times.contains(number), "a time")
      default: try require((0...highest).contains(number), "a number")
      }
    }
    func text(_ column: String) -> String? { if case .text(let text)? = values[column] { text } else { nil } }
    switch table.name {
    case "items":
      let places: [Place] = try StoredZone.decoded(text("places") ?? "")
      if !places.isEmpty { try SendCheck.check(places: places) }
      try SendCheck.check(attributes: try StoredZone.decoded(text("attributes") ?? ""))
      if case .integer(let mode)? = values["mode"] { try SendCheck.check(mode: Int(mode)) }
      if case .blob(let target)? = values["target"] { try SendCheck.check(target: target) }
    case "versions":
      if case .integer(let number)? = values["number"] { try require(number > 0, "a version") }
    case "labels": if let label = text("label") { try require(VersionLabel.isSound(label), "a label") }
    case "authors", "placements":
      for column in ["handle", "made_by", "placed_by"] {
        if let handle = text(column) { try require((try? AccountHandle(handle)) != nil, "a handle") }
      }
    case "events": let _: Event = try StoredZone.decoded(text("event") ?? "")
    default: break
    }
  }

  private static func require(_ isSound: Bool, _ what: String) throws {
    guard isSound else { throw HubError(.invalid, "\(what) that cannot be") }
  }
}
