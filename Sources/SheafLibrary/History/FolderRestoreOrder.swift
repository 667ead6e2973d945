import SheafStore

/// The order in which a restoration gives items their places.
///
/// Rules:
/// 1. What goes out of a folder, or is deleted from it, goes before the folder itself moves. So nothing is on its way
///    where it neither was nor belongs, as in a share into which the folder moves.
/// 2. A folder has its place before something comes into it from outside.
/// 3. Where these contradict each other, as when two folders change places with each other, the plan's order counts.
struct FolderRestoreOrder {
  /// Where the inode of an item is; a folder that was deleted counts as where it was.
  struct Place {
    let ino: Int64
    let parent: Int64
    let isPresent: Bool
  }

  private struct Placement {
    let action: FolderRestorePlan.Action
    /// The folder that has to have its place before (rule 2).
    var waitsFor: Int64?
    /// What has yet to leave it (rule 1).
    var inside = 0
    var isDone = false
  }

  private var placements: [Int64: Placement] = [:]
  /// The items in the plan's order, from the one on that may not be done.
  private var items: [Int64] = []
  private var first = 0
  /// Items that may be next.
  private var ready: [Int64] = []
  /// By an item that leaves a folder, that folder; by a folder, what waits for it.
  private var leaves: [Int64: Int64] = [:]
  private var waiting: [Int64: [Int64]] = [:]

  /// - Parameters:
  ///   - place: where an item is; nil for one that is gone.
  ///   - parent: the folder around a folder; nil at the top.
  init(
    _ plan: FolderRestorePlan, place: (Int64) throws -> Place?, parent: (Int64) throws -> Int64?
  ) throws {
    var (places, moving): ([Int64: Place], [Int64: Int64]) = ([:], [:])
    for action in plan.deletions + plan.placements { places[action.item] = try place(action.item) }
    for action in plan.placements {
      placements[action.item] = Placement(action: action)
      items.append(action.item)
      if let ino = places[action.item]?.ino { moving[ino] = action.item }
    }
    var known: [Int64: Int64?] = [:]
    /// The nearest folder that moves: one itself, or one around it.
    func nearest(_ folder: Int64) throws -> Int64? {
      var (passed, found, next): (Set<Int64>, Int64?, Int64?) = ([], nil, folder)
      while let ino = next, !passed.contains(ino) {
        if let item = moving[ino] {
          found = item
          break
        }
        if let item = known[ino] {
          found = item
          break
        }
        passed.insert(ino)
        next = try parent(ino)
      }
      for ino in passed { known[ino] = .some(found) }
      return found
    }
    /// Whether a folder is in one that moves, or is that one: now, or where all have their places.
    func isInside(_ folder: Int64, _ moved: Int64, finally: Bool) throws -> Bool {
      var (next, passed) = (try nearest(folder), Set<Int64>())
      while let item = next, passed.insert(item).inserted {
        if item == moved { return true }
        guard let around = finally ? placements[item]?.action.place?.parent : places[item]?.parent else { return false }
        next = try nearest(around)
      }
      return false
    }
    for action in plan.deletions + plan.placements {
      guard let now = places[action.item] else { continue }
      let around = now.isPresent ? try nearest(now.parent) : nil
      var target: Int64?
      if placements[action.item] != nil, let parent = action.place?.parent {
        target = parent
        if let folder = try nearest(parent), folder != action.item,
          try !(now.isPresent && isInside(now.parent, folder, finally: false))
        {
          placements[action.item]?.waitsFor = folder
          waiting[folder, default: []].append(action.item)
        }
      }
      if let around, around != action.item {
        if let target, try nearest(target) != around, try isInside(target, around, finally: true) { continue }
        leaves[action.item] = around
        placements[around]?.inside += 1
      }
    }
    ready = items.reversed().filter { isReady($0) }
  }

  private func isReady(_ item: Int64) -> Bool {
    guard let placement = placements[item], !placement.isDone, placement.inside == 0 else { return false }
    return placement.waitsFor.map { placements[$0]?.isDone ?? true } ?? true
  }

  /// The next item to get its place, if one can by the rules; `note(_:)` has to follow.
  mutating func next() -> FolderRestorePlan.Action? {
    while let item = ready.popLast() {
      if isReady(item) { return placements[item]?.action }
    }
    return nil
  }

  /// The next item of the plan, whatever the rules say; nil if all are done.
  mutating func nextOfPlan() -> FolderRestorePlan.Action? {
    while first < items.count {
      if let placement = placements[items[first]], !placement.isDone { return placement.action }
      first += 1
    }
    return nil
  }

  /// Notes that an item has its place, was deleted, or was left alone.
  mutating func note(_ item: Int64) {
    placements[item]?.isDone = true
    var freed: [Int64] = waiting.removeValue(forKey: item) ?? []
    if let folder = leaves.removeValue(forKey: item) {
      placements[folder]?.inside -= 1
      freed.append(folder)
    }
    ready += freed.reversed().filter { isReady($0) }
  }
}
