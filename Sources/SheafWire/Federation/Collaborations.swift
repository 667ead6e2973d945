public import FoundationEssentials

/// `POST /v1/keys`: a device deposits keys at its hub, each of which will stand for it in one share of another hub.
public struct KeyDeposit: Hashable, Sendable, Codable {
  /// Keys of one request.
  public static let mostKeys = 64

  public struct Key: Hashable, Sendable, Codable {
    /// A P-256 key as an uncompressed point of 65 bytes, made for this alone.
    public let key: Data
    /// The signature of a ``DeviceProof`` with purpose `deposit` by the device's own key, as DER. Its secret is the key
    /// in base64url.
    public let signature: Data

    public init(key: Data, signature: Data) {
      self.key = key
      self.signature = signature
    }
  }

  /// The hub's address as the device dialled it.
  public let address: String
  public let keys: [Key]

  public init(address: String, keys: [Key]) {
    self.address = address
    self.keys = keys
  }
}

/// `GET /v1/keys`, and the answer to a ``KeyDeposit``: how many keys of the device stand for nothing yet, and how many
/// more the hub takes.
public struct KeyStock: Hashable, Sendable, Codable {
  public let unused: Int
  public let wanted: Int

  public init(unused: Int, wanted: Int) {
    self.unused = unused
    self.wanted = wanted
  }
}

/// `GET /v1/collaborations/SHARE`: what a device needs to prove itself to the hub of a share.
public struct Collaboration: Hashable, Sendable, Codable {
  public let share: WireID
  /// The hub of the share: `https://ADDRESS`.
  public let hub: String
  /// The zone in which the share is there.
  public let zone: WireID
  /// The hashes of the keys that stand for the account's devices, among random ones: 8 or 16, of 32 bytes each.
  public let leaves: [Data]
  /// The key that stands for the device that asks; null while none does.
  public let key: Data?

  public init(share: WireID, hub: String, zone: WireID, leaves: [Data], key: Data?) {
    self.share = share
    self.hub = hub
    self.zone = zone
    self.leaves = leaves
    self.key = key
  }
}

/// `POST /v1/guests`: a device of another hub's account begins a session for one share.
public struct GuestRequest: Hashable, Sendable, Codable {
  public let zone: WireID
  public let share: WireID
  public let nonce: String
  /// The hub's address as the device dialled it.
  public let address: String
  /// Its signature is of a ``DeviceProof`` with purpose `guest`, by the key in it.
  public let proof: IdentityProof

  public init(zone: WireID, share: WireID, nonce: String, address: String, proof: IdentityProof) {
    self.zone = zone
    self.share = share
    self.nonce = nonce
    self.address = address
    self.proof = proof
  }

  /// The bytes that a device signs: a proof for one share is none for another.
  public static func message(share: WireID, nonce: String, address: String, key: Data) -> Data {
    DeviceProof(purpose: .guest, address: address, secret: "\(share) \(nonce)", key: key).message
  }
}

/// `POST /v1/federation/keys`: the hub of a share asks another one for keys of somebody who is to be invited.
public struct CollaborationRequest: Hashable, Sendable, Codable {
  /// Who is to be invited.
  public let handle: String
  /// Whose share it is.
  public let owner: String
  public let share: WireID
  /// The zone in which the share is.
  public let zone: WireID

  public init(handle: String, owner: String, share: WireID, zone: WireID) {
    self.handle = handle
    self.owner = owner
    self.share = share
    self.zone = zone
  }
}

/// The answer to a ``CollaborationRequest``, and `POST /v1/federation/roots`: the root hash over the keys that stand for
/// somebody's devices in a share. The hub of the share learns neither the keys nor how many there are.
public struct CollaborationRoot: Hashable, Sendable, Codable {
  public let handle: String
  /// The person's display name; null if nobody gave one.
  public let name: String?
  public let share: WireID
  public let zone: WireID
  /// 32 bytes.
  public let root: Data
  /// How many hashes it is over: 8 or 16.
  public let size: Int
  /// Higher for a root that takes the place of another.
  public let revision: Int64

  public init(handle: String, name: String?, share: WireID, zone: WireID, root: Data, size: Int, revision: Int64) {
    self.handle = handle
    self.name = name
    self.share = share
    self.zone = zone
    self.root = root
    self.size = size
    self.revision = revision
  }
}

/// `POST /v1/federation/inbox`: the hub of a share tells another one what became of somebody's part in it.
public struct InboxNews: Hashable, Sendable, Codable {
  public let handle: String
  /// Of the share; an older one changes nothing.
  public let revision: Int64
  public let entry: InboxEntry

  public init(handle: String, revision: Int64, entry: InboxEntry) {
    self.handle = handle
    self.revision = revision
    self.entry = entry
  }
}
