import SheafModel
import SheafStore

/// The events of a person's action on an item and everything below it: one event for the item, and one for each share
/// below that has its own participants.
struct TreeAction {
  /// An item that it was done to.
  struct Part {
    let item: ItemRow
    let ino: Int64
    let actor: Int64
    /// Of those that have events of their own, with what they took along.
    var data: EventData
  }

  private(set) var heads: [Part] = []
  private var headsByShare: [Int64?: Int] = [:]

  /// Adds an item, after the folder that it is in.
  mutating func add(_ part: Part) {
    guard !part.item.isQuiet else { return }
    let share = part.data.share?.share
    if let head = headsByShare[share] {
      heads[head].data.include(part.data)
    } else {
      headsByShare[share] = heads.count
      heads.append(part)
    }
  }
}

extension Library {
  /// Logs what was done to a tree.
  func log(_ type: EventType, _ action: TreeAction, _ change: Change) throws {
    for part in action.heads {
      try logEvent(
        type, part.item, ino: part.ino, part.data, actor: part.actor, thread: 0, opens: false, change)
    }
  }
}
