import SheafModel
import SheafStore

/// Where something is, as events and lists tell it: the path below `Documents`, and the share that it is in there.
///
/// A longer path than ``limit`` is told without its middle, so that what lies deep costs no more than all else: it
/// begins with whole names of 1024 bytes at most, goes on with one named `…`, and ends with as many names as fit.
struct ToldPlace {
  /// Bytes of a path at most: PATH_MAX, past which no system call takes one.
  static let limit = 4096
  /// Bytes of the names before the gap.
  private static let headLimit = 1024
  private static let slash = UInt8(ascii: "/")
  /// The name that stands for those that are left out.
  private static let gap = Array("…".utf8)

  /// The names, joined by `/`; empty for `Documents` itself.
  private(set) var path: [UInt8] = []
  private(set) var share: ShareMark?
  /// Names in `path`.
  private var count = 0
  /// Folders above it, `Documents` among them, and those whose names are left out.
  private(set) var depth = 0
  /// The names before the gap: how many, and their bytes with the `/` behind the last; nil where nothing is left out.
  private var head: (count: Int, length: Int)?

  /// `Documents`.
  ///
  /// - Parameter shared: its item, if that is shared.
  init(shared: Int64?) { share = shared.map { ShareMark(share: $0, depth: -1) } }

  /// Goes on to a name in the folder.
  ///
  /// - Parameter shared: the item there, if that is shared.
  mutating func append(_ name: [UInt8], shared: Int64?) {
    if count > 0 { path.append(Self.slash) }
    path += name
    count += 1
    depth += 1
    if let shared { share = ShareMark(share: shared, depth: Int64(count - 1)) }
    if path.count > Self.limit { shorten() }
  }

  private mutating func shorten() {
    let head = head ?? insertGap()
    self.head = head
    let start = head.length + Self.gap.count + 1
    var (end, dropped) = (start, 0)
    while path.count - (end - start) > Self.limit, let slash = path[end...].firstIndex(of: Self.slash) {
      (end, dropped) = (slash + 1, dropped + 1)
    }
    path.removeSubrange(start..<end)
    count -= dropped
    guard let share, share.depth > head.count else { return }
    // The gap stands for a shared item that is left out.
    self.share = ShareMark(share: share.share, depth: max(Int64(head.count), share.depth - Int64(dropped)))
  }

  private mutating func insertGap() -> (count: Int, length: Int) {
    var head = (count: 0, length: 0)
    while let end = path[head.length...].firstIndex(of: Self.slash), end < Self.headLimit {
      head = (head.count + 1, end + 1)
    }
    path.insert(contentsOf: Self.gap + [Self.slash], at: head.length)
    count += 1
    if let share, share.depth >= head.count { self.share = ShareMark(share: share.share, depth: share.depth + 1) }
    return head
  }

  /// The names behind that of the shared item.
  var pathInShare: [UInt8] {
    guard let share else { return path }
    // The gap may stand for more than the shared item.
    let isLeftOut = head.map { Int64($0.count) == share.depth } ?? false
    let names = path.split(separator: Self.slash).dropFirst(Int(share.depth) + (isLeftOut ? 0 : 1))
    return Array(names.joined(separator: [Self.slash]))
  }

  /// Whether a path may be one without its middle.
  static func isShortened(_ path: String) -> Bool { path.utf8.count >= limit - 256 && path.contains("/…/") }
}

/// Rooms: `ShareBook`.
extension Library {
  /// Looks at a folder and those above it, one after the other, until `body` returns false.
  ///
  /// - Throws: `corrupt` where folders of a damaged library lie in each other.
  func ascend(from folder: Int64, _ body: (Inode) throws -> Bool) throws {
    var (next, passed, steps, limit) = (folder, folder, 0, 1)
    while next != 0 {
      let inode = try inode(next)
      guard try body(inode) else { return }
      next = inode.row.parent
      guard next != passed else { throw Self.liesInItself(next) }
      steps += 1
      // In a circle of any length, `passed` is some day a folder of the circle.
      if steps == limit { (passed, steps, limit) = (next, 0, limit * 2) }
    }
  }

  /// Of how many folders that were passed on the way up one is remembered: all would be too much of a deep tree, and
  /// whoever goes there again is near to one.
  static func remembered(of passed: Int) -> Int { max(64, 1 + passed / 64) }

  static func liesInItself(_ folder: Int64) -> SheafError {
    SheafError(.corrupt, subject: "folder \(folder)", reason: "lies in itself", advice: "run sheaf check")
  }

  /// Folders that are passed with the lock held on the way down to one.
  private static let approachStep = 128

  /// Folders that whoever goes up may pass before they come to one whose place is remembered.
  private static let nearby = ShareBook.placeDistance + 64

  /// How often it is tried to have it remembered where folders are, which others may move meanwhile.
  private static let approaches = 3

  /// Whether it is remembered where a folder is, or one that is not far above it, in which share, and what rules say
  /// there.
  ///
  /// - Parameter asksTime: Whether it has to be remembered since when it is in the share.
  func isNear(_ folder: Int64, asksTime: Bool) throws -> Bool {
    var left = Self.nearby
    var (knowsPlace, knowsIgnored, knowsShare, knowsTime) = (
      false, false, shares.isEmpty, shares.isEmpty || !asksTime
    )
    try ascend(from: folder) { inode in
      left -= 1
      knowsPlace = knowsPlace || shares.place(ofFolder: inode.ino) != nil
      knowsIgnored = knowsIgnored || knowsRules(of: inode.ino)
      knowsTime = knowsTime || shares.entryTime(ofFolder: inode.ino) != nil
      if let share = shares.share(ofFolder: inode.ino) {
        knowsShare = true
        // An item in no share entered none.
        knowsTime = knowsTime || share == 0
      }
      if inode.row.parent == 0 { (knowsPlace, knowsIgnored, knowsShare, knowsTime) = (true, true, true, true) }
      return left > 0 && !(knowsPlace && knowsIgnored && knowsShare && knowsTime)
    }
    return knowsPlace && knowsIgnored && knowsShare && knowsTime
  }

  /// Runs something about what is in some folders with the lock held, once it is remembered where they are
  /// (``approach(_:)``). After a folder was moved it is not: then it is found out with the lock free in between.
  ///
  /// - Parameter asksTime: Whether it is asked since when they are in their shares.
  func lockedNear<Value>(
    _ folders: [Int64], asksTime: Bool = false, operation: StaticString = #function, _ body: () throws -> Value
  ) throws -> Value {
    for _ in 0..<Self.approaches {
      let value: Value? = try locked(
        {
          // Of what is not there, or is damaged, `body` says so.
          for folder in folders {
            if let isNear = try? isNear(folder, asksTime: asksTime), !isNear { return nil }
            // It is remembered now, so that the next look from here, or from a folder below, is short.
            _ = try? share(ofFolder: folder)
          }
          return .some(try body())
        }, operation: operation)
      if let value { return value }
      for folder in folders { try? approach(folder) }
    }
    return try locked(body, operation: operation)
  }

  /// Makes the library remember where a folder is, in which share, since when, and which rules of `.sheafignore` hold
  /// there, however deep that is: from the top down, some folders at a time. A later look-up with the lock held goes up a
  /// few folders only.
  func approach(_ folder: Int64) throws {
    if try locked({ try isNear(folder, asksTime: true) }) { return }
    let passed = try wholeWay(from: folder)
    for index in stride(from: passed.count / Self.approachStep * Self.approachStep, through: 0, by: -Self.approachStep)
    where index < passed.count {
      try locked {
        // It may have gone meanwhile: the next look-up finds out.
        guard let inode = try? inode(passed[index]) else { return }
        _ = try place(ofFolder: inode.ino)
        _ = try ignoredPlace(of: inode.ino)
        if let share = try share(ofFolder: inode.ino) { _ = try entryTime(of: inode, in: share) }
      }
    }
  }

  /// A folder and all above it, looked up beside the lock.
  ///
  /// - Throws: `corrupt` where folders of a damaged library lie in each other.
  private func wholeWay(from folder: Int64) throws -> [Int64] {
    try store.snapshot { transaction in
      var passed = [folder]
      var seen = Set(passed)
      while let parent = try transaction.inode(passed[passed.count - 1])?.parent, parent != 0 {
        guard seen.insert(parent).inserted else { throw Self.liesInItself(parent) }
        passed.append(parent)
      }
      return passed
    }
  }

  /// A folder and all above it, as that was a moment ago.
  struct WayUp {
    fileprivate let folders: Set<Int64>
    /// How many folders had moved then.
    fileprivate let moveCount: Int
  }

  /// Looks up, beside the lock, what lies above a folder; nil where that is so little that it can be looked up with it
  /// held.
  func wayUp(from folder: Int64) throws -> WayUp? {
    let moveCount: Int? = try locked {
      var left = Self.nearby
      try ascend(from: folder) { _ in
        left -= 1
        return left > 0
      }
      return left > 0 ? nil : shares.moveCount
    }
    return try moveCount.map { WayUp(folders: Set(try wholeWay(from: folder)), moveCount: $0) }
  }

  /// Whether a folder is `top` or lies below it.
  ///
  /// - Parameter way: The way up from the folder, as it was looked up just before. It counts if nothing on it has moved
  ///   since.
  func isBelow(_ folder: Int64, _ top: Int64, by way: WayUp? = nil) throws -> Bool {
    if let way, !shares.mayHaveMoved(way.folders, since: way.moveCount) { return way.folders.contains(top) }
    var isBelow = false
    try ascend(from: folder) { inode in
      isBelow = inode.ino == top
      return !isBelow
    }
    return isBelow
  }

  /// The path below `Documents`, joined by `/`, of `name` in `parent`.
  func path(_ parent: Int64, _ name: [UInt8]) throws -> [UInt8] { try place(parent, name, item: nil).path }

  /// The place of `name` in `parent`, and the share that `item`, which has that name, is in there.
  func place(_ parent: Int64, _ name: [UInt8], item: Int64?) throws -> ToldPlace {
    let shared = item.flatMap { shares.active($0) == nil ? nil : $0 }
    guard parent != 0 else { return ToldPlace(shared: shared) }
    var place = try place(ofFolder: parent)
    place.append(name, shared: shared)
    return place
  }

  private func place(ofFolder folder: Int64) throws -> ToldPlace {
    var place: ToldPlace?
    var passed: [(ino: Int64, name: [UInt8], shared: Int64?)] = []
    try ascend(from: folder) { inode in
      place = shares.place(ofFolder: inode.ino)
      if place != nil { return false }
      passed.append((inode.ino, inode.row.name, inode.row.item.flatMap { shares.active($0) == nil ? nil : $0 }))
      return true
    }
    let step = Self.remembered(of: passed.count)
    for (height, part) in passed.enumerated().reversed() {
      if place == nil {
        place = ToldPlace(shared: part.shared)
      } else {
        place?.append(part.name, shared: part.shared)
      }
      if let place, height % step == 0 || place.depth % ShareBook.placeDistance == 0 {
        shares.note(place, ofFolder: part.ino)
      }
    }
    return place ?? ToldPlace(shared: nil)
  }
}
