import SheafModel
import SheafStore

/// Consecutive versions of a document, the latest first, that become one pack: each is stored as what differs from the
/// one after it.
struct PackRun {
  /// A version that is about to refer to `member` or to a chunk that is there already.
  struct Rewrite {
    enum Target {
      case member(Int)
      case chunk(Int64)
    }

    let number: Int64
    let old: StoredContent
    let target: Target
  }

  struct Member {
    /// The chunk that already has these bytes; nil where it is to be made.
    let chunk: Int64?
    let hash: ChunkHash?
    let size: Int64
    let delta: ArraySlice<UInt8>
  }

  /// The contents from which the first member is made.
  let base: StoredContent
  private(set) var members: [Member] = []
  private(set) var rewrites: [Rewrite] = []
  /// Packs of an earlier time whose members are in this one.
  private(set) var merged: [Int64] = []
  /// In how many of their bases a chunk is.
  private(set) var mergedBases: [Int64: Int] = [:]
  /// The contents, in the form in which they are stored now, of the version from which the next member is made.
  private(set) var last: StoredContent
  /// Their bytes, once they are needed.
  var bytes: [UInt8]?
  private var byHash: [ChunkHash: Int] = [:]
  private var deltaBytes = 0
  private var largest: Int64

  init(base: StoredContent, bytes: [UInt8]? = nil) {
    self.base = base
    self.bytes = bytes
    last = base
    largest = base.length
  }

  /// - Parameter isFirst: whether the bytes are those of the first delta, or of a pack to begin with: they may be any
  ///   number.
  private func hasRoom(members count: Int, deltaBytes more: Int, largest size: Int64, isFirst: Bool) -> Bool {
    let total = members.count + count
    return total <= Pack.limit && (isFirst || deltaBytes + more <= Pack.deltaLimit)
      && Int64(total) * max(largest, size) <= Pack.copyLimit
  }

  /// Whether one more member fits.
  func hasRoom(for delta: [UInt8], size: Int) -> Bool {
    hasRoom(members: 1, deltaBytes: delta.count, largest: Int64(size), isFirst: members.isEmpty)
  }

  /// Whether the members of `pack` fit, after one more with this delta.
  func hasRoom(for pack: Pack, after delta: [UInt8]? = nil) -> Bool {
    hasRoom(
      members: pack.chunks.count + (delta == nil ? 0 : 1), deltaBytes: pack.deltaBytes + (delta?.count ?? 0),
      largest: pack.base.length, isFirst: members.isEmpty && delta == nil)
  }

  /// Makes a version refer to a member with these bytes; false where none has them.
  mutating func join(_ version: VersionRow, hash: ChunkHash) -> Bool {
    guard let index = byHash[hash] else { return false }
    rewrites.append(Rewrite(number: version.number, old: version.content, target: .member(index)))
    return true
  }

  /// Makes a version refer to a chunk that is there.
  mutating func redirect(_ version: VersionRow, to chunk: Int64) {
    rewrites.append(Rewrite(number: version.number, old: version.content, target: .chunk(chunk)))
  }

  /// Makes a version a member.
  ///
  /// - Parameter chunk: that holds all of it already.
  mutating func add(_ version: VersionRow, _ bytes: [UInt8], hash: ChunkHash, delta: [UInt8], chunk: Int64?) {
    byHash[hash] = members.count
    if chunk == nil {
      rewrites.append(Rewrite(number: version.number, old: version.content, target: .member(members.count)))
    }
    members.append(Member(chunk: chunk, hash: hash, size: Int64(bytes.count), delta: delta[...]))
    deltaBytes += delta.count
    largest = max(largest, Int64(bytes.count))
    last = version.content
    self.bytes = bytes
  }

  /// Takes the members of an earlier pack, whose base is what was added last.
  ///
  /// - Parameter last: the contents of its last member.
  mutating func merge(_ pack: Pack, last: StoredContent) {
    merged.append(pack.id)
    for chunk in pack.base.chunks { mergedBases[chunk, default: 0] += 1 }
    self.last = last
    members += zip(pack.chunks, pack.deltas).map { Member(chunk: $0, hash: nil, size: 0, delta: $1) }
    deltaBytes += pack.deltaBytes
    bytes = nil
  }

  /// Versions that are packed by this and were not.
  var versionCount: Int { rewrites.count + members.count { $0.chunk != nil && $0.hash != nil } }

  /// Whether there is anything to write.
  var isEmpty: Bool { rewrites.isEmpty && !members.contains { $0.hash != nil } }
}
