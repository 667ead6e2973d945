/// The locks of one family that are held of one file.
///
/// Those of one owner do not overlap. All lie in blocks, in the order of their first bytes, and each block knows how
/// far its locks reach. So a lock that is in the way is found by a look at each block, and at the locks of one or two.
struct HeldLocks {
  typealias Lock = FileLocks.Lock
  typealias Owner = FileLocks.Owner

  /// The replacement of a range: the locks that go, and those that come in their place.
  struct Replacement {
    fileprivate(set) var gone: [Lock] = []
    fileprivate(set) var new: [Lock] = []

    /// How many more locks there are with it.
    var growth: Int { new.count - gone.count }
  }

  /// How far locks reach: the furthest end, and the furthest one of any other owner. So for each owner, one of the two
  /// belongs to somebody else.
  private struct Reach {
    private var first: (owner: Owner, end: Int64)?
    private var second: (owner: Owner, end: Int64)?

    mutating func add(_ lock: Lock) {
      let (owner, end) = (lock.owner, lock.range.upperBound)
      if let first, end <= first.end {
        if owner != first.owner, second.map({ end > $0.end }) ?? true { second = (owner, end) }
      } else {
        if let first, first.owner != owner { second = first }
        first = (owner, end)
      }
    }

    /// The furthest end of a lock that is not `owner`'s; -1 where there is none.
    func end(butOf owner: Owner) -> Int64 {
      guard let first else { return -1 }
      return first.owner == owner ? second?.end ?? -1 : first.end
    }
  }

  private struct Block {
    private(set) var locks: [Lock]
    /// Of all locks, and of the exclusive ones; nil where some went since they were looked at.
    private var reaches: (all: Reach, exclusive: Reach)?

    init(_ locks: [Lock]) { self.locks = locks }

    mutating func insert(_ lock: Lock, at index: Int) {
      locks.insert(lock, at: index)
      reaches?.all.add(lock)
      if lock.isExclusive { reaches?.exclusive.add(lock) }
    }

    mutating func remove(at index: Int) {
      locks.remove(at: index)
      reaches = nil
    }

    /// How far the locks reach that `lock` may be in conflict with.
    mutating func reach(for lock: Lock) -> Reach {
      if let reaches { return lock.isExclusive ? reaches.all : reaches.exclusive }
      var found = (all: Reach(), exclusive: Reach())
      for held in locks {
        found.all.add(held)
        if held.isExclusive { found.exclusive.add(held) }
      }
      reaches = found
      return lock.isExclusive ? found.all : found.exclusive
    }
  }

  /// Locks of a block at most.
  private static let blockLength = 128

  private var blocks: [Block] = []
  /// The first bytes of each owner's locks, in their order.
  private var starts: [Owner: [Int64]] = [:]
  /// How many locks owners set through each handle.
  private var ways: [UInt64: [Owner: Int]] = [:]

  var isEmpty: Bool { blocks.isEmpty }

  var owners: some Collection<Owner> { starts.keys }

  /// Those who hold locks that were set through a handle.
  func owners(through handle: UInt64) -> [Owner] { ways[handle].map { Array($0.keys) } ?? [] }

  // MARK: - Looking

  /// Adds the processes that set the first lock of each owner.
  func addProcesses(to processes: inout Set<Int32>) {
    for (owner, starts) in starts {
      if let start = starts.first { processes.insert(lock(from: start, of: owner).process) }
    }
  }

  /// The first lock that keeps `lock` from being set.
  ///
  /// - Parameter comparisons: counts the blocks and locks that were looked at.
  mutating func first(against lock: Lock, _ comparisons: inout Int) -> Lock? {
    for index in blocks.indices {
      comparisons += 1
      if blocks[index].locks[0].range.lowerBound > lock.range.upperBound { return nil }
      guard blocks[index].reach(for: lock).end(butOf: lock.owner) >= lock.range.lowerBound else { continue }
      comparisons += blocks[index].locks.count
      if let found = blocks[index].locks.first(where: lock.conflicts) { return found }
    }
    return nil
  }

  /// The locks of an owner.
  func locks(of owner: Owner) -> [Lock] { (starts[owner] ?? []).map { lock(from: $0, of: owner) } }

  /// Computes an owner's locks without `range`, which becomes `lock` if one is given.
  ///
  /// Neighbours of one kind that were set through one handle are one lock.
  func replacement(of range: ClosedRange<Int64>, by owner: Owner, with lock: Lock? = nil) -> Replacement {
    var result = Replacement()
    var lock = lock
    func joins(_ other: Lock) -> Bool {
      lock.map { $0.isExclusive == other.isExclusive && $0.handle == other.handle } ?? false
    }
    func leave(_ other: Lock, _ part: ClosedRange<Int64>) {
      if joins(other), let whole = lock?.range {
        lock?.range = min(whole.lowerBound, part.lowerBound)...max(whole.upperBound, part.upperBound)
      } else {
        var other = other
        other.range = part
        result.new.append(other)
      }
    }
    for other in touching(range, of: owner) {
      guard other.range.overlaps(range) || joins(other) else { continue }
      result.gone.append(other)
      guard other.range.overlaps(range) else {
        leave(other, other.range)
        continue
      }
      if other.range.lowerBound < range.lowerBound {
        leave(other, other.range.lowerBound...(range.lowerBound - 1))
      }
      if other.range.upperBound > range.upperBound {
        leave(other, (range.upperBound + 1)...other.range.upperBound)
      }
    }
    if let lock { result.new.append(lock) }
    return result
  }

  /// The locks of an owner that overlap a range or lie at its ends, the last one first.
  private func touching(_ range: ClosedRange<Int64>, of owner: Owner) -> [Lock] {
    guard let starts = starts[owner] else { return [] }
    let end = range.upperBound == .max ? .max : range.upperBound + 1
    var index = starts.countPrefix { $0 <= end }
    var found: [Lock] = []
    while index > 0 {
      index -= 1
      let lock = lock(from: starts[index], of: owner)
      // One that ends right before the range begins lies at its end.
      if lock.range.upperBound < range.lowerBound - 1 { break }
      found.append(lock)
    }
    return found
  }

  // MARK: - Changing

  mutating func make(_ replacement: Replacement) {
    for lock in replacement.gone { remove(lock) }
    for lock in replacement.new { insert(lock) }
  }

  /// Removes the locks of an owner that were set through a handle, or all of them where that is nil; returns how many.
  mutating func removeAll(of owner: Owner, through handle: UInt64? = nil) -> Int {
    // The last first, since each removal moves everything behind it.
    let gone = locks(of: owner).filter { handle == nil || $0.handle == handle }.reversed()
    for lock in gone { remove(lock) }
    return gone.count
  }

  private mutating func insert(_ lock: Lock) {
    let (start, owner) = (lock.range.lowerBound, lock.owner)
    let own = starts[owner]?.countPrefix { $0 < start } ?? 0
    starts[owner, default: []].insert(start, at: own)
    ways[lock.handle, default: [:]][owner, default: 0] += 1
    guard !blocks.isEmpty else {
      blocks = [Block([lock])]
      return
    }
    let (block, index) = place(start, owner)
    blocks[block].insert(lock, at: index)
    let locks = blocks[block].locks
    if locks.count > Self.blockLength {
      let half = locks.count / 2
      blocks.replaceSubrange(block...block, with: [Block(Array(locks[..<half])), Block(Array(locks[half...]))])
    }
  }

  private mutating func remove(_ lock: Lock) {
    let (start, owner) = (lock.range.lowerBound, lock.owner)
    if let own = starts[owner]?.countPrefix(where: { $0 < start }) { starts[owner]?.remove(at: own) }
    if starts[owner]?.isEmpty ?? false { starts[owner] = nil }
    ways[lock.handle]?[owner]? -= 1
    if ways[lock.handle]?[owner] == 0 { ways[lock.handle]?[owner] = nil }
    if ways[lock.handle]?.isEmpty ?? false { ways[lock.handle] = nil }
    let (block, index) = place(start, owner)
    blocks[block].remove(at: index)
    if blocks[block].locks.isEmpty {
      blocks.remove(at: block)
    } else {
      joinBlocks(block)
    }
    if block > 0 { joinBlocks(block - 1) }
  }

  /// Makes one block of a block and the next one if they are nearly empty: there are never many blocks with few locks.
  private mutating func joinBlocks(_ block: Int) {
    guard block + 1 < blocks.count else { return }
    let (left, right) = (blocks[block].locks, blocks[block + 1].locks)
    guard left.count + right.count <= Self.blockLength / 2 else { return }
    blocks.replaceSubrange(block...(block + 1), with: [Block(left + right)])
  }

  private func lock(from start: Int64, of owner: Owner) -> Lock {
    let (block, index) = place(start, owner)
    return blocks[block].locks[index]
  }

  /// Where the lock of an owner lies that begins at a byte, or would lie.
  private func place(_ start: Int64, _ owner: Owner) -> (block: Int, index: Int) {
    func isBefore(_ lock: Lock) -> Bool {
      (lock.range.lowerBound, lock.owner.door, lock.owner.id) < (start, owner.door, owner.id)
    }
    let block = max(0, blocks.countPrefix { isBefore($0.locks[0]) } - 1)
    let index = blocks[block].locks.countPrefix(where: isBefore)
    // The first of a block is not before itself.
    if index == blocks[block].locks.count, block + 1 < blocks.count { return (block + 1, 0) }
    return (block, index)
  }
}

extension Array {
  /// How many elements a condition is true of, in an array in which it is true of the first ones and no others.
  fileprivate func countPrefix(where isBefore: (Element) -> Bool) -> Int {
    var (low, high) = (0, count)
    while low < high {
      let middle = (low + high) / 2
      if isBefore(self[middle]) { low = middle + 1 } else { high = middle }
    }
    return low
  }
}
