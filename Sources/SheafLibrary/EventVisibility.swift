import Foundation
import SheafModel
import SheafStore

/// Who sees which event, and as what: the one place (CONTRACT.md, "Events").
///
/// - An account sees events of its own documents, with paths relative to its `Documents`.
/// - A mention is seen by whom it mentions, and by nobody else.
/// - The library itself, for the machine's owner and the sidecar, sees every event as the owner of the item sees it.
struct EventVisibility: Sendable {
  /// Who looks; nil for the library itself.
  let viewer: AccountRow?
  let accounts: [Int64: Account]
  let library: String

  /// The event of a row as the viewer sees it; nil where the viewer does not.
  ///
  /// - Throws: `corrupt` where the row makes no sense.
  func event(_ row: EventRow) throws -> Event? {
    guard let viewer else { return try decoded(row) }
    guard row.type != EventType.mention.rawValue else {
      let event = try decoded(row)
      return event.data.mentioned?.handle == viewer.handle ? event : nil
    }
    return row.owner == viewer.id ? try decoded(row) : nil
  }

  private func decoded(_ row: EventRow) throws -> Event {
    guard let type = EventType(rawValue: row.type), let actor = accounts[row.actor],
      let stored = try? JSONDecoder().decode(EventData.self, from: Data(row.data.utf8))
    else {
      throw SheafError(.corrupt, subject: "event \(row.number)", advice: "run sheaf check")
    }
    var data = EventDetails(item: stored.item, actor: actor)
    data.version = stored.version
    data.previousPath = stored.previousPath
    data.previousName = stored.previousName
    data.contents = stored.contents
    data.contentCount = stored.contentCount
    data.comment = stored.comment
    data.mentioned = accounts.values.first { $0.handle.description == stored.mentioned }
    return Event(
      id: row.uuid.text, source: "sheaf://\(library)", type: type, subject: stored.item.id, time: row.time,
      sequence: row.number, data: data)
  }
}

/// Which of the visible events are asked for: all, or those of an item and what is below it.
package struct EventScope: Sendable {
  /// Id of the item; nil for all.
  let item: String?
  /// Where it is, as the reader sees paths; nil for what has no place of its own.
  let path: String?

  package static let all = EventScope(item: nil, path: nil)

  func includes(_ event: Event) -> Bool {
    guard let item else { return true }
    if event.subject == item { return true }
    guard let path else { return false }
    let prefix = path.isEmpty ? "" : path + "/"
    return event.data.item.path.hasPrefix(prefix) || event.data.previousPath?.hasPrefix(prefix) ?? false
  }
}
