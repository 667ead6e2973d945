import Crypto
import Foundation
import SheafModel
import SheafWire

/// The keys of a person's devices for one collaboration, as hashes: pairs of them are hashed, and pairs of those, up to
/// one root, which is all that a server keeps of them.
struct IdentityTree: Hashable, Sendable {
  /// How many keys a tree has; random ones stand for those that are missing, so that nobody counts the devices.
  static let sizes = [8, 16]

  /// From the leaves up to the root.
  private let levels: [[[UInt8]]]

  /// - Returns: nil unless there are as many hashes as a tree has, of 32 bytes each.
  init?(leaves: [[UInt8]]) {
    guard Self.sizes.contains(leaves.count), leaves.allSatisfy({ $0.count == SHA256.byteCount }) else { return nil }
    var levels = [leaves]
    while let level = levels.last, level.count > 1 {
      levels.append(
        stride(from: 0, to: level.count, by: 2).map { Self.hash(level[$0], level[$0 + 1]) })
    }
    self.levels = levels
  }

  /// A tree of some keys, in an order that tells nothing, among random ones.
  ///
  /// - Returns: nil for keys that are none, or more than a tree has.
  init?(keys: [Data], using random: inout some RandomNumberGenerator) {
    guard let size = Self.sizes.first(where: { $0 >= keys.count }), keys.allSatisfy({ (try? DeviceKey($0)) != nil })
    else { return nil }
    let others = (keys.count..<size).map { _ in P256.Signing.PrivateKey().publicKey.x963Representation }
    self.init(leaves: (keys + others).shuffled(using: &random).map(Self.leaf))
  }

  var leaves: [[UInt8]] { levels[0] }

  var root: IdentityRoot { IdentityRoot(hash: levels[levels.count - 1][0], size: leaves.count) }

  /// The hash that stands for a key.
  static func leaf(_ key: Data) -> [UInt8] { Array(SHA256.hash(data: key)) }

  static func hash(_ left: [UInt8], _ right: [UInt8]) -> [UInt8] { Array(SHA256.hash(data: left + right)) }

  /// The hashes that lead from a leaf up to the root; nil for a leaf that there is not.
  func inclusionHashes(of index: Int) -> [Data]? {
    guard leaves.indices.contains(index) else { return nil }
    return levels.dropLast().enumerated().map { Data($1[index >> $0 ^ 1]) }
  }
}

/// The root of a tree of keys, and how many keys it has.
struct IdentityRoot: Hashable, Sendable {
  let hash: [UInt8]
  let size: Int

  init(hash: [UInt8], size: Int) { (self.hash, self.size) = (hash, size) }

  /// The root under which a proof's key is, if the proof is what it says.
  ///
  /// - Returns: nil for a proof of another form.
  init?(above proof: IdentityProof) {
    let size = 1 << min(proof.inclusionHashes.count, Int.bitWidth - 2)
    guard IdentityTree.sizes.contains(size), (0..<size).contains(proof.publicKeyIndex),
      proof.inclusionHashes.allSatisfy({ $0.count == SHA256.byteCount }), (try? DeviceKey(proof.publicKey)) != nil
    else { return nil }
    hash = proof.inclusionHashes.enumerated().reduce(IdentityTree.leaf(proof.publicKey)) { hash, next in
      let (level, other) = (next.offset, [UInt8](next.element))
      return proof.publicKeyIndex >> level & 1 == 1
        ? IdentityTree.hash(other, hash) : IdentityTree.hash(hash, other)
    }
    self.size = size
  }
}

extension CollaborationRoot {
  /// - Throws: ``HubError`` of kind `invalid` for a root that is none.
  func check() throws {
    guard (try? AccountHandle(handle)) != nil, root.count == SHA256.byteCount, IdentityTree.sizes.contains(size),
      (0..<1 << 53).contains(revision)
    else { throw HubError(.invalid, "the root is none") }
    if let name { _ = try CheckedText.name(name, upTo: 255) }
  }
}
