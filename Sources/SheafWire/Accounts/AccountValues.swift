public import FoundationEssentials

/// `GET /v1`: the hub that answers.
public struct HubFacts: Hashable, Sendable, Codable {
  /// `sheaf-hub`.
  public let name: String
  /// The number of the interface.
  public let api: Int
  /// The program's version.
  public let version: String

  public init(name: String, api: Int, version: String) {
    self.name = name
    self.api = api
    self.version = version
  }
}

/// `POST /v1/devices`: a device spends an enrolment code. Repeated with the same code and key, it gets the same answer.
public struct DeviceRequest: Hashable, Sendable, Codable {
  /// The longest name of a device, in bytes.
  public static let longestName = 64

  public let code: String
  /// The device's name for people.
  public let name: String
  /// The hub's address as the device dialled it.
  public let address: String
  /// The public key, an uncompressed point of 65 bytes.
  public let key: Data
  /// The signature of a ``DeviceProof`` with purpose `enroll`, as DER.
  public let signature: Data

  public init(code: String, name: String, address: String, key: Data, signature: Data) {
    self.code = code
    self.name = name
    self.address = address
    self.key = key
    self.signature = signature
  }
}

/// The answer to a ``DeviceRequest``.
public struct EnrolledDevice: Hashable, Sendable, Codable {
  /// The device's id, a UUID in lower case.
  public let device: String
  public let handle: String
  /// The id of the account's zone, a UUID in lower case.
  public let zone: String

  public init(device: String, handle: String, zone: String) {
    self.device = device
    self.handle = handle
    self.zone = zone
  }
}

/// The answer to a ``DeviceRequest`` at `POST /v1/enrollments/preview`: of whom the machine would become a device.
public struct EnrollmentPreview: Hashable, Sendable, Codable {
  public let handle: String
  /// The id of the account's zone, a UUID in lower case.
  public let zone: String

  public init(handle: String, zone: String) {
    self.handle = handle
    self.zone = zone
  }
}

/// `POST /v1/challenges`: a nonce that is good for one session.
public struct Challenge: Hashable, Sendable, Codable {
  public let nonce: String
  /// When it ends, RFC 3339 in UTC.
  public let expires: String

  public init(nonce: String, expires: String) {
    self.nonce = nonce
    self.expires = expires
  }
}

/// `POST /v1/sessions`: a device begins a session. `POST /v1/wipes`: one that was removed tells that what it had of the
/// account is destroyed.
public struct SessionRequest: Hashable, Sendable, Codable {
  public let zone: String
  public let device: String
  public let nonce: String
  /// The hub's address as the device dialled it.
  public let address: String
  /// The signature of a ``DeviceProof`` with purpose `session`, or `wipe`, as DER.
  public let signature: Data

  public init(zone: String, device: String, nonce: String, address: String, signature: Data) {
    self.zone = zone
    self.device = device
    self.nonce = nonce
    self.address = address
    self.signature = signature
  }
}

/// The answer to a ``SessionRequest``.
public struct SessionToken: Hashable, Sendable, Codable {
  /// For the header `Authorization: Bearer TOKEN`.
  public let token: String
  /// When it ends, RFC 3339 in UTC.
  public let expires: String

  public init(token: String, expires: String) {
    self.token = token
    self.expires = expires
  }
}

/// `GET /v1/account`: the account of the session.
public struct AccountFacts: Hashable, Sendable, Codable {
  public let handle: String
  /// The person's display name; null if nobody gave one.
  public let name: String?
  public let zone: String
  /// Bytes of contents that the account may have; null without a limit.
  public let quota: Int64?
  /// Bytes of contents that it has.
  public let used: Int64

  public init(handle: String, name: String?, zone: String, quota: Int64?, used: Int64) {
    self.handle = handle
    self.name = name
    self.zone = zone
    self.quota = quota
    self.used = used
  }

  public func encode(to encoder: any Encoder) throws {
    var container = encoder.container(keyedBy: CodingKeys.self)
    try container.encode(handle, forKey: .handle)
    try container.encode(name, forKey: .name)
    try container.encode(zone, forKey: .zone)
    try container.encode(quota, forKey: .quota)
    try container.encode(used, forKey: .used)
  }
}

/// A device in `GET /v1/devices`.
public struct DeviceFacts: Hashable, Sendable, Codable {
  public let id: String
  public let name: String
  /// When it was enrolled, RFC 3339 in UTC.
  public let added: String
  /// When it last began a session; null where it has not yet.
  public let seen: String?
  /// How far it is with destroying what it has of the account, if it was removed for that; none for a device.
  public let wipe: WipeFacts?

  public init(id: String, name: String, added: String, seen: String?, wipe: WipeFacts? = nil) {
    self.id = id
    self.name = name
    self.added = added
    self.seen = seen
    self.wipe = wipe
  }

  public func encode(to encoder: any Encoder) throws {
    var container = encoder.container(keyedBy: CodingKeys.self)
    try container.encode(id, forKey: .id)
    try container.encode(name, forKey: .name)
    try container.encode(added, forKey: .added)
    try container.encode(seen, forKey: .seen)
    try container.encodeIfPresent(wipe, forKey: .wipe)
  }
}

/// How far a removed device is with destroying what it has of the account.
public struct WipeFacts: Hashable, Sendable, Codable {
  /// When it was asked for, RFC 3339 in UTC.
  public let asked: String
  /// When the device told that it is done; null where it has not yet.
  public let done: String?

  public init(asked: String, done: String?) {
    self.asked = asked
    self.done = done
  }

  public func encode(to encoder: any Encoder) throws {
    var container = encoder.container(keyedBy: CodingKeys.self)
    try container.encode(asked, forKey: .asked)
    try container.encode(done, forKey: .done)
  }
}

/// `GET /v1/devices`: the devices of the session's account, the oldest first, and then those that were removed to destroy
/// what they have of it.
public struct DeviceList: Hashable, Sendable, Codable {
  public let devices: [DeviceFacts]

  public init(devices: [DeviceFacts]) { self.devices = devices }
}

/// `POST /v1/links`: a link by which one more device can be enrolled.
public struct LinkFacts: Hashable, Sendable, Codable {
  public let link: String
  /// When it ends, RFC 3339 in UTC.
  public let expires: String

  public init(link: String, expires: String) {
    self.link = link
    self.expires = expires
  }
}
