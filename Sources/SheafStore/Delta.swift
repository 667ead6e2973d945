internal import Glibc
package import SheafModel

/// The steps that make some bytes from other, similar ones, the base (docs/FORMAT.md, "packs").
///
/// A delta is the number of its steps, the steps, and then all literals one after the other. A step says how many
/// literals come first, by how much the place in the base moves from where the step before ended, and how many bytes
/// are copied from there.
package enum Delta {
  /// Bytes that have to be equal to count as a match.
  private static let matchLength = 16
  /// Bytes past a difference within which to look for the place where both go on alike.
  private static let resyncReach = 48

  /// The delta that makes `target` from `base`; nil where it would have more than `limit` literals.
  package static func encode(_ target: [UInt8], from base: [UInt8], literalLimit limit: Int = .max) -> [UInt8]? {
    base.withUnsafeBytes { base in
      target.withUnsafeBytes { target in
        var encoder = DeltaEncoder(base: base, target: target)
        return encoder.encode(limit: limit)
      }
    }
  }

  /// Makes the target in `result`, whose storage is used again.
  ///
  /// - Throws: `corrupt` where the delta is damaged or does not fit the base.
  package static func apply(_ delta: ArraySlice<UInt8>, to base: [UInt8], into result: inout [UInt8]) throws(SheafError)
  {
    result.removeAll(keepingCapacity: true)
    var reader = VarintReader(bytes: delta)
    let count = try reader.next()
    var steps = reader
    // The literals begin where the steps end.
    for _ in 0..<count { for _ in 0..<3 { _ = try reader.next() } }
    var literals = reader.position
    var place: Int64 = 0
    for _ in 0..<count {
      let literal = Int(try steps.next())
      place += unzigzag(try steps.next())
      let length = try steps.next()
      guard literal <= delta.endIndex - literals, place >= 0, length <= Int64(base.count) - place,
        Int64(result.count) + Int64(literal) + length <= Pack.memberLimit
      else { throw damaged }
      result.append(contentsOf: delta[literals..<(literals + literal)])
      literals += literal
      result.append(contentsOf: base[Int(place)..<Int(place + length)])
      place += length
    }
    guard literals == delta.endIndex else { throw damaged }
  }

  static let damaged = SheafError(.corrupt, subject: "a delta", reason: "is damaged", advice: "run sheaf check")

  /// Maps small numbers of either sign to small ones without a sign.
  fileprivate static func zigzag(_ value: Int) -> Int64 { (Int64(value) << 1) ^ (Int64(value) >> 63) }
  private static func unzigzag(_ value: Int64) -> Int64 { (value >> 1) ^ -(value & 1) }

  /// Finds the runs that base and target have in common, from front to back.
  private struct DeltaEncoder {
    let base: UnsafeRawBufferPointer
    let target: UnsafeRawBufferPointer
    private var steps: [UInt8] = []
    private var stepCount: Int64 = 0
    private var literals: [UInt8] = []
    /// The end of the copied bytes in the base.
    private var place = 0
    private lazy var index = BlockIndex(base)

    init(base: UnsafeRawBufferPointer, target: UnsafeRawBufferPointer) {
      self.base = base
      self.target = target
    }

    mutating func encode(limit: Int) -> [UInt8]? {
      var position = commonLength(base, 0, target, 0)
      add(literal: 0..<0, copy: 0..<position)
      while position < target.count {
        guard let match = match(after: position, limit: limit - literals.count) else {
          guard target.count - position <= limit - literals.count else { return nil }
          add(literal: position..<target.count, copy: place..<place)
          break
        }
        guard match.start - position <= limit - literals.count else { return nil }
        add(literal: position..<match.start, copy: match.base)
        position = match.start + match.base.count
      }
      var delta: [UInt8] = []
      delta.append(varint: stepCount)
      return delta + steps + literals
    }

    private mutating func add(literal: Range<Int>, copy: Range<Int>) {
      guard !literal.isEmpty || !copy.isEmpty else { return }
      stepCount += 1
      steps.append(varint: Int64(literal.count))
      steps.append(varint: Delta.zigzag(copy.lowerBound - place))
      steps.append(varint: Int64(copy.count))
      literals.append(contentsOf: target[literal])
      place = copy.upperBound
    }

    /// The next common run: its start in the target, and its place in the base.
    private mutating func match(after position: Int, limit: Int) -> (start: Int, base: Range<Int>)? {
      if let near = resync(position) { return extended(near.target, near.base, from: position) }
      var start = position
      while start + Delta.matchLength <= target.count {
        if start - position > limit { return nil }
        if let found = index.find(target, start) { return extended(start, found, from: position) }
        start += 1
      }
      return nil
    }

    /// The places a little further on from which both go on alike, as they do after a changed word.
    private func resync(_ position: Int) -> (target: Int, base: Int)? {
      let length = Delta.matchLength
      for sum in 0..<Delta.resyncReach {
        for skipped in 0...sum {
          let (inTarget, inBase) = (position + skipped, place + sum - skipped)
          guard inTarget + length <= target.count, inBase + length <= base.count else { continue }
          if equal(base, inBase, target, inTarget) { return (inTarget, inBase) }
        }
      }
      return nil
    }

    private func extended(_ start: Int, _ found: Int, from position: Int) -> (start: Int, base: Range<Int>) {
      let length = commonLength(base, found, target, start)
      var back = 0
      while start - back > position, found - back > 0, base[found - back - 1] == target[start - back - 1] { back += 1 }
      return (start - back, (found - back)..<(found + length))
    }

    private func equal(_ left: UnsafeRawBufferPointer, _ at: Int, _ right: UnsafeRawBufferPointer, _ to: Int) -> Bool {
      left.loadUnaligned(fromByteOffset: at, as: UInt64.self)
        == right.loadUnaligned(fromByteOffset: to, as: UInt64.self)
        && left.loadUnaligned(fromByteOffset: at + 8, as: UInt64.self)
          == right.loadUnaligned(fromByteOffset: to + 8, as: UInt64.self)
    }

    private func commonLength(
      _ left: UnsafeRawBufferPointer, _ at: Int, _ right: UnsafeRawBufferPointer, _ to: Int
    ) -> Int {
      let end = min(left.count - at, right.count - to)
      var length = 0
      while length + 8 <= end {
        let difference =
          left.loadUnaligned(fromByteOffset: at + length, as: UInt64.self)
          ^ right.loadUnaligned(fromByteOffset: to + length, as: UInt64.self)
        if difference != 0 { return length + difference.trailingZeroBitCount / 8 }
        length += 8
      }
      while length < end, left[at + length] == right[to + length] { length += 1 }
      return length
    }
  }

  /// The place of each aligned block of the base, by a hash of its bytes.
  private struct BlockIndex {
    private let base: UnsafeRawBufferPointer
    private var slots: [Int32]
    private let shift: UInt64

    init(_ base: UnsafeRawBufferPointer) {
      self.base = base
      let blocks = base.count / Delta.matchLength
      let bits = max(4, Int.bitWidth - max(1, blocks).leadingZeroBitCount + 1)
      shift = UInt64(64 - bits)
      slots = Array(repeating: -1, count: 1 << bits)
      // The first of equal blocks stays.
      for block in stride(from: blocks - 1, through: 0, by: -1) {
        slots[slot(base, block * Delta.matchLength)] = Int32(block)
      }
    }

    private func slot(_ bytes: UnsafeRawBufferPointer, _ at: Int) -> Int {
      let (low, high) = words(bytes, at)
      let mixed = (low &* 0x9E37_79B9_7F4A_7C15) ^ (high &* 0xC2B2_AE3D_27D4_EB4F)
      return Int((mixed &* 0x1656_67B1_9E37_79F9) >> shift)
    }

    private func words(_ bytes: UnsafeRawBufferPointer, _ at: Int) -> (UInt64, UInt64) {
      (
        bytes.loadUnaligned(fromByteOffset: at, as: UInt64.self),
        bytes.loadUnaligned(fromByteOffset: at + 8, as: UInt64.self)
      )
    }

    /// A place in the base with the bytes at `position` of `target`.
    func find(_ target: UnsafeRawBufferPointer, _ position: Int) -> Int? {
      let block = slots[slot(target, position)]
      guard block >= 0 else { return nil }
      let found = Int(block) * Delta.matchLength
      return words(base, found) == words(target, position) ? found : nil
    }
  }
}
