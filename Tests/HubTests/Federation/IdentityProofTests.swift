import ConformanceKit
import Crypto
import Foundation
import SheafWire
import Testing

@testable import SheafHub

/// Proofs that a key is under a root hash: the vectors, and what must not pass for one.
@Suite struct IdentityProofTests {
  private struct Vectors: Decodable {
    struct Proof: Decodable {
      let publicKey: String
      let publicKeyIndex: Int
      let inclusionHashes: [String]
      let data: String
      let signature: String
      let twin: String

      private enum CodingKeys: String, CodingKey {
        case publicKey, publicKeyIndex, inclusionHashes
        case data = "data_utf8"
        case signature = "signature_der"
        case twin = "signature_der_high_s_twin"
      }
    }

    let keys: [String]
    let leaves: [String]
    let root: String
    let proof: Proof
    let negative: [String]

    private enum CodingKeys: String, CodingKey {
      case leaves, root, negative
      case keys = "keys_x963"
      case proof = "proof_P3"
    }

    static func read() throws -> Vectors {
      let path = URL(fileURLWithPath: #filePath).deletingLastPathComponent().deletingLastPathComponent()
        .deletingLastPathComponent().appendingPathComponent("Fixtures/identity-proof.json")
      return try JSONDecoder().decode(Vectors.self, from: try Data(contentsOf: path))
    }
  }

  private static func bytes(_ text: String) throws -> [UInt8] { try #require(Hexadecimal.bytes(of: text)) }

  private static func proof(_ vectors: Vectors) throws -> (proof: IdentityProof, data: Data) {
    let known = vectors.proof
    let proof = IdentityProof(
      publicKey: Data(try bytes(known.publicKey)), publicKeyIndex: known.publicKeyIndex,
      inclusionHashes: try known.inclusionHashes.map { Data(try bytes($0)) },
      signature: Data(try bytes(known.signature)))
    return (proof, Data(known.data.utf8))
  }

  private static func isGood(_ proof: IdentityProof, _ root: IdentityRoot, of data: Data) -> Bool {
    IdentityRoot(above: proof) == root
      && (try? DeviceKey(proof.publicKey))?.verifies(proof.signature, of: data) ?? false
  }

  @Test func theVectorsAreAsTheyShouldBe() throws {
    let vectors = try Vectors.read()
    let keys = try vectors.keys.map { Data(try Self.bytes($0)) }
    #expect(keys.map(IdentityTree.leaf) == (try vectors.leaves.map(Self.bytes)))
    let tree = try #require(IdentityTree(leaves: keys.map(IdentityTree.leaf)))
    #expect(tree.root == IdentityRoot(hash: try Self.bytes(vectors.root), size: 8))
    let (proof, data) = try Self.proof(vectors)
    #expect(tree.inclusionHashes(of: 2) == proof.inclusionHashes && proof.publicKey == keys[2])
    #expect(Self.isGood(proof, tree.root, of: data))
    // A signature has a twin that anybody can make of it; so what is signed is good once.
    var twin = proof
    twin.signature = Data(try Self.bytes(vectors.proof.twin))
    #expect(Self.isGood(twin, tree.root, of: data))
    for index in 0..<8 {
      let other = IdentityProof(
        publicKey: keys[index], publicKeyIndex: index,
        inclusionHashes: try #require(tree.inclusionHashes(of: index)), signature: Data())
      #expect(IdentityRoot(above: other) == tree.root, "\(index)")
    }
    #expect(tree.inclusionHashes(of: 8) == nil && tree.inclusionHashes(of: -1) == nil)
  }

  @Test func whatIsWrongIsRefused() throws {
    let vectors = try Vectors.read()
    #expect(vectors.negative.count == 9)
    let (proof, data) = try Self.proof(vectors)
    let root = IdentityRoot(hash: try Self.bytes(vectors.root), size: 8)
    func refuses(_ what: Comment, _ change: (inout IdentityProof) throws -> Void) rethrows {
      var changed = proof
      try change(&changed)
      #expect(changed != proof && !Self.isGood(changed, root, of: data), what)
    }
    for index in [10, 8, -1, .max, .min, 3, 0] { refuses("index \(index)") { $0.publicKeyIndex = index } }
    var outside = proof
    outside.publicKeyIndex = 10
    #expect(IdentityRoot(above: outside) == nil)
    refuses("a hash less") { $0.inclusionHashes.removeLast() }
    refuses("a hash more") { $0.inclusionHashes.append($0.inclusionHashes[0]) }
    refuses("no hash") { $0.inclusionHashes = [] }
    refuses("many hashes") { $0.inclusionHashes = Array(repeating: $0.inclusionHashes[0], count: 1_000) }
    for length in [0, 31, 33, 64] {
      refuses("a hash of \(length)") { $0.inclusionHashes[1] = Data(repeating: 1, count: length) }
    }
    for index in 0..<3 { refuses("another hash") { $0.inclusionHashes[index][0] ^= 1 } }
    refuses("hashes in another order") { $0.inclusionHashes.swapAt(0, 1) }
    refuses("a raw key") { $0.publicKey = $0.publicKey.dropFirst() }
    try refuses("a compressed key") {
      $0.publicKey = try P256.Signing.PublicKey(x963Representation: $0.publicKey).compressedRepresentation
    }
    refuses("no point") { $0.publicKey[64] ^= 1 }
    try refuses("another key") { $0.publicKey = Data(try Self.bytes(vectors.keys[0])) }
    refuses("another signature") { $0.signature[20] ^= 1 }
    refuses("no signature") { $0.signature = Data() }
    refuses("a long signature") { $0.signature += Data([0]) }
    #expect(!Self.isGood(proof, root, of: data + [0]))
    #expect(!Self.isGood(proof, IdentityRoot(hash: root.hash, size: 16), of: data))
    for count in [0, 1, 7, 9, 15, 17] {
      #expect(IdentityTree(leaves: Array(repeating: root.hash, count: count)) == nil)
    }
    #expect(IdentityTree(leaves: Array(repeating: [1], count: 8)) == nil)
  }

  /// A tree among random keys has 8, then 16 leaves, and each of a person's keys proves itself.
  @Test func aTreeHidesHowManyKeysThereAre() throws {
    var random = SeededRandom(seed: 7)
    for (count, size) in [(0, 8), (1, 8), (8, 8), (9, 16), (16, 16)] {
      let secrets = (0..<count).map { _ in P256.Signing.PrivateKey() }
      let keys = secrets.map { $0.publicKey.x963Representation }
      let tree = try #require(IdentityTree(keys: keys, using: &random))
      #expect(tree.leaves.count == size && Set(tree.leaves).count == size)
      for (secret, key) in zip(secrets, keys) {
        let index = try #require(tree.leaves.firstIndex(of: IdentityTree.leaf(key)))
        let proof = IdentityProof(
          publicKey: key, publicKeyIndex: index, inclusionHashes: try #require(tree.inclusionHashes(of: index)),
          signature: try secret.signature(for: Data([1])).derRepresentation)
        #expect(Self.isGood(proof, tree.root, of: Data([1])))
      }
    }
    let many = (0..<17).map { _ in P256.Signing.PrivateKey().publicKey.x963Representation }
    #expect(IdentityTree(keys: many, using: &random) == nil)
    #expect(IdentityTree(keys: [Data(repeating: 4, count: 65)], using: &random) == nil)
  }
}
