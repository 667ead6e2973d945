import Foundation
import SheafHubStore
import SheafModel
import SheafWire

/// The keys by which the devices of this hub's people are known in shares of other hubs. For each such share, a
/// *collaboration*, one key that a device deposited stands for that device; the other hub has the root hash alone.
///
/// Each change first takes the account's row, so that deposits, removals of devices and invitations come one after the
/// other. A new root is told to the other hub by a row of `outgoing_roots`, written in the same transaction.
struct Collaborations: Sendable {
  /// Keys of a device that stand for nothing yet.
  static let mostUnused = 64
  /// Devices that a root can stand for: the ones that were enrolled first.
  static let mostDevices = IdentityTree.sizes[IdentityTree.sizes.count - 1]
  /// Collaborations of an account.
  static let most = Sharing.mostJoined
  /// Those with shares of one hub that the account has not accepted. Each one takes keys that its devices deposited.
  static let mostUnanswered = 32
  /// Seconds after which a root is told again when a device asks, which it does every ten minutes (``Guests``).
  private static let toldAgainSeconds: Int64 = 300
  private static let hashLength = 32

  let database: any Database
  let clock: HubClock
  let addresses: HubAddresses
  /// Whether the hub speaks for a domain. Otherwise it wants no keys.
  let federates: Bool

  // MARK: - Deposits

  /// How many keys of a device stand for nothing yet.
  func stock(of caller: Caller) async throws -> KeyStock {
    try await database.read { [self] connection in try stock(of: caller, &connection) }
  }

  private func stock(of caller: Caller, _ connection: inout any SQLConnection) throws -> KeyStock {
    let rows = try connection.query(
      "SELECT COUNT(*) FROM deposits WHERE zone = $1 AND device = $2", [.text(caller.zone), .text(caller.device)])
    let unused = Int(try rows.first?.integer(0) ?? 0)
    return KeyStock(unused: unused, wanted: federates ? max(0, Self.mostUnused - unused) : 0)
  }

  /// Takes keys of a device. Collaborations in which nothing stands for it yet take them first.
  ///
  /// - Throws: ``HubError`` of kind `invalid` for keys that the device did not sign, or too many.
  func deposit(_ deposit: KeyDeposit, by caller: Caller) async throws -> KeyStock {
    guard deposit.keys.count <= KeyDeposit.mostKeys else {
      throw HubError(.invalid, "keys: at most \(KeyDeposit.mostKeys) at once")
    }
    guard addresses.contains(deposit.address) else { throw HubError(.invalid, "address: this hub has another") }
    let now = clock.now
    return try await database.write { [self] connection in
      _ = try Accounts.take(caller.zone, in: &connection)
      guard let bytes = try Accounts.key(of: caller.device, zone: caller.zone, in: &connection) else {
        throw HubError(.unauthorized, "the device was removed")
      }
      let own = try DeviceKey(bytes)
      var room = try stock(of: caller, &connection).wanted
      for key in deposit.keys where room > 0 {
        let point = [UInt8](key.key)
        guard
          own.verifies(
            key.signature, of: .deposit, address: deposit.address, secret: Base64URL.text(try DeviceKey(point).bytes))
        else { throw HubError(.invalid, "keys: one is not signed by the device") }
        let isUsed = try connection.query(
          "SELECT COUNT(*) FROM collaboration_keys WHERE zone = $1 AND key = $2", [.text(caller.zone), .blob(point)])
        // A request that is made again does not have a key stand for two shares.
        if try isUsed.first?.integer(0) ?? 0 > 0 { continue }
        room -= try connection.execute(
          """
          INSERT INTO deposits (zone, device, key, signature) VALUES ($1, $2, $3, $4) ON CONFLICT DO NOTHING
          """, [.text(caller.zone), .text(caller.device), .blob(point), .blob([UInt8](key.signature))])
      }
      try Self.renewAll(of: caller.zone, at: now, &connection)
      return try stock(of: caller, &connection)
    }
  }

  // MARK: - Collaborations

  /// Has keys stand for somebody's devices in a share of another hub. Asked again, it answers the same.
  ///
  /// - Throws: ``HubError`` of kind `notFound` for a handle that has no account, `forbidden` for an owner for whom the
  ///   other hub does not speak, and `conflict` for a share that is known to be elsewhere, or too many.
  func join(
    _ request: CollaborationRequest, from domain: String, at address: HubAddress
  ) async throws -> CollaborationRoot {
    guard Federation.domain(of: request.owner) == domain else {
      throw HubError(.forbidden, "the hub does not speak for the owner")
    }
    let (share, now) = (request.share, clock.now)
    return try await database.write { connection in
      guard let handle = try? AccountHandle(request.handle),
        let person = try ShareRows.person(handle, in: &connection)
      else { throw HubError(.notFound, "no account has this handle") }
      _ = try Accounts.take(person.zone, in: &connection)
      let key: [SQLValue] = [.text(person.zone), .blob(share.bytes)]
      if let known = try Stored.read(key, &connection) {
        guard known.owner == request.owner, known.address == address.description else {
          throw HubError(.conflict, "the share is known to be elsewhere")
        }
      } else {
        let inbox = try connection.query("SELECT COUNT(*) FROM inbox WHERE zone = $1 AND share = $2", key)
        guard try inbox.first?.integer(0) ?? 0 == 0 else {
          throw HubError(.conflict, "the share is known to be elsewhere")
        }
        let count = try connection.query("SELECT COUNT(*) FROM collaborations WHERE zone = $1", [.text(person.zone)])
        guard try count.first?.integer(0) ?? 0 < Self.most else {
          throw HubError(.conflict, "the account takes part in as many shares as it may")
        }
        guard try Self.unanswered(from: address, of: person.zone, &connection) < Self.mostUnanswered else {
          throw HubError(.conflict, "the account has not answered \(Self.mostUnanswered) invitations of this hub")
        }
      }
      try connection.execute(
        """
        INSERT INTO collaborations (zone, share, owner, address, place, leaves, revision, told)
        VALUES ($1, $2, $3, $4, $5, $6, 0, 0) ON CONFLICT (zone, share) DO UPDATE SET place = excluded.place
        """,
        key + [
          .text(request.owner), .text(address.description), .text(request.zone.description), .blob([]),
        ])
      try Self.renew(share, of: person.zone, at: now, &connection)
      // It is told by this answer.
      try Self.noteTold(share, of: person.zone, at: now, &connection)
      guard let root = try Self.root(of: share, zone: person.zone, &connection) else {
        throw HubStoreError.corrupt("a collaboration has no keys")
      }
      return root.root
    }
  }

  /// What a device needs to prove itself to the hub of a share.
  ///
  /// A device asks when it begins a session there. The root is told again before it does, unless that was lately: the
  /// other hub may have been put back to a state in which it has an older one.
  ///
  /// - Returns: with it, whether the root is to be told to the other hub now.
  /// - Throws: ``HubError`` of kind `notFound`.
  func collaboration(_ share: WireID, of caller: Caller) async throws -> (Collaboration, isToBeTold: Bool) {
    let key: [SQLValue] = [.text(caller.zone), .blob(share.bytes)]
    let limit = clock.now.seconds - Self.toldAgainSeconds
    let (found, told) = try await database.read { connection in
      guard let known = try Stored.read(key, &connection), !known.leaves.isEmpty, let place = WireID(known.place) else {
        throw HubShare.nothing
      }
      let own = try connection.query(
        "SELECT key FROM collaboration_keys WHERE zone = $1 AND share = $2 AND device = $3",
        key + [.text(caller.device)])
      let found = Collaboration(
        share: share, hub: "https://\(known.address)", zone: place, leaves: known.leaves.map { Data($0) },
        key: try own.first.map { Data(try $0.blob(0)) })
      return (found, known.told)
    }
    guard told < limit else { return (found, false) }
    try await database.write { connection in try Self.tell(key, &connection) }
    return (found, true)
  }

  /// Has a root told to the other hub.
  private static func tell(_ key: [SQLValue], _ connection: inout any SQLConnection) throws {
    try connection.execute("INSERT INTO outgoing_roots (zone, share) VALUES ($1, $2) ON CONFLICT DO NOTHING", key)
  }

  /// The shares of other hubs of which an account was told.
  static func shares(of zone: String, _ connection: inout any SQLConnection) throws -> Set<WireID> {
    Set(
      try connection.query("SELECT share FROM collaborations WHERE zone = $1", [.text(zone)])
        .map { try StoredZone.id($0.blob(0)) })
  }

  /// Whether a hub is the one that has a share, and speaks for its owner.
  static func isFrom(
    _ address: HubAddress, share: WireID, of zone: String, owner: String, _ connection: inout any SQLConnection
  ) throws -> Bool {
    let known = try Stored.read([.text(zone), .blob(share.bytes)], &connection)
    return known.map { $0.address == address.description && $0.owner == owner } ?? false
  }

  /// How many shares of a hub an account was told of, and neither accepted nor is out of.
  private static func unanswered(
    from address: HubAddress, of zone: String, _ connection: inout any SQLConnection
  ) throws -> Int {
    let known = try connection.query(
      "SELECT share, leaves FROM collaborations WHERE zone = $1 AND address = $2",
      [.text(zone), .text(address.description)])
    let accepted =
      try connection.query("SELECT share FROM accepted_abroad WHERE zone = $1", [.text(zone)])
      + connection.query(
        "SELECT share FROM inbox WHERE zone = $1 AND acceptance = $2",
        [.text(zone), .text(Acceptance.accepted.rawValue)])
    let answered = Set(try accepted.map { try $0.blob(0) })
    return try known.count { try !$0.blob(1).isEmpty && !answered.contains($0.blob(0)) }
  }

  // MARK: - Acceptance

  /// Notes that an account takes part in a share of another hub, of whose word alone nobody does.
  ///
  /// - Throws: ``HubError`` of kind `notFound` for a share to which nobody invited the account.
  func accept(_ share: WireID, by caller: Caller) async throws {
    let key: [SQLValue] = [.text(caller.zone), .blob(share.bytes)]
    try await database.write { connection in
      _ = try Accounts.take(caller.zone, in: &connection)
      guard try Stored.read(key, &connection) != nil else { throw HubShare.nothing }
      try connection.execute("INSERT INTO accepted_abroad (zone, share) VALUES ($1, $2) ON CONFLICT DO NOTHING", key)
    }
  }

  /// Whether an account takes part in a share of another hub, by its own word.
  static func isAccepted(
    _ share: WireID, of zone: String, _ connection: inout any SQLConnection
  ) throws -> Bool {
    try connection.query(
      "SELECT share FROM accepted_abroad WHERE zone = $1 AND share = $2", [.text(zone), .blob(share.bytes)]
    ).first != nil
  }

  /// Has no key stand for somebody in a share any more, who is out.
  static func end(_ share: WireID, of zone: String, _ connection: inout any SQLConnection) throws {
    let key: [SQLValue] = [.text(zone), .blob(share.bytes)]
    try connection.execute("DELETE FROM accepted_abroad WHERE zone = $1 AND share = $2", key)
    try connection.execute("DELETE FROM collaboration_keys WHERE zone = $1 AND share = $2", key)
    try connection.execute("DELETE FROM outgoing_roots WHERE zone = $1 AND share = $2", key)
    try connection.execute(
      "UPDATE collaborations SET leaves = $1 WHERE zone = $2 AND share = $3", [.blob([])] + key)
  }

  /// Forgets that a share is of another hub.
  ///
  /// - Returns: whether it was taken for one.
  static func forget(_ share: [UInt8], of zone: String, _ connection: inout any SQLConnection) throws -> Bool {
    let key: [SQLValue] = [.text(zone), .blob(share)]
    guard try connection.execute("DELETE FROM collaborations WHERE zone = $1 AND share = $2", key) > 0 else {
      return false
    }
    try end(StoredZone.id(share), of: zone, &connection)
    return true
  }

  /// Forgets a device that was removed: other hubs get roots in which nothing stands for it.
  static func forget(
    device: String, of zone: String, at now: Timestamp, _ connection: inout any SQLConnection
  ) throws {
    let key: [SQLValue] = [.text(zone), .text(device)]
    try connection.execute("DELETE FROM deposits WHERE zone = $1 AND device = $2", key)
    try connection.execute("DELETE FROM collaboration_keys WHERE zone = $1 AND device = $2", key)
    try renewAll(of: zone, at: now, &connection)
  }

  /// Deletes all rows of an account.
  static func destroy(_ zone: String, _ connection: inout any SQLConnection) throws {
    let values = [SQLValue.text(zone)]
    try connection.execute("DELETE FROM deposits WHERE zone = $1", values)
    try connection.execute("DELETE FROM collaboration_keys WHERE zone = $1", values)
    try connection.execute("DELETE FROM outgoing_roots WHERE zone = $1", values)
    try connection.execute("DELETE FROM accepted_abroad WHERE zone = $1", values)
    try connection.execute("DELETE FROM collaborations WHERE zone = $1", values)
  }

  // MARK: - Roots

  private static func renewAll(of zone: String, at now: Timestamp, _ connection: inout any SQLConnection) throws {
    for row in try connection.query("SELECT share, leaves FROM collaborations WHERE zone = $1", [.text(zone)]) {
      // Those that ended have none.
      if try row.blob(1).isEmpty { continue }
      try renew(StoredZone.id(row.blob(0)), of: zone, at: now, &connection)
    }
  }

  /// Has a key stand for each device for which one is there, and makes a new root if the keys are others than before.
  private static func renew(
    _ share: WireID, of zone: String, at now: Timestamp, _ connection: inout any SQLConnection
  ) throws {
    let place: [SQLValue] = [.text(zone), .blob(share.bytes)]
    guard let known = try Stored.read(place, &connection) else { return }
    var keys: [[UInt8]] = []
    let devices = try connection.query(
      "SELECT device FROM devices WHERE zone = $1 ORDER BY added LIMIT $2",
      [.text(zone), .integer(Int64(mostDevices))])
    for row in devices {
      let device = try row.text(0)
      if let key = try connection.query(
        "SELECT key FROM collaboration_keys WHERE zone = $1 AND share = $2 AND device = $3", place + [.text(device)]
      ).first?.blob(0) {
        keys.append(key)
        continue
      }
      guard
        let key = try connection.query(
          "SELECT key FROM deposits WHERE zone = $1 AND device = $2 ORDER BY key LIMIT 1", [.text(zone), .text(device)]
        ).first?.blob(0)
      else { continue }
      try connection.execute(
        "DELETE FROM deposits WHERE zone = $1 AND device = $2 AND key = $3",
        [.text(zone), .text(device), .blob(key)])
      try connection.execute(
        "INSERT INTO collaboration_keys (zone, share, device, key) VALUES ($1, $2, $3, $4)",
        place + [.text(device), .blob(key)])
      keys.append(key)
    }
    let leaves = Set(keys.map { IdentityTree.leaf(Data($0)) })
    // The same keys have the same root: of the others, random ones, no more than before may be there.
    if known.keys == keys.count, !known.leaves.isEmpty, leaves.isSubset(of: known.leaves) { return }
    var random = SystemRandomNumberGenerator()
    guard let tree = IdentityTree(keys: keys.map { Data($0) }, using: &random) else {
      throw HubStoreError.corrupt("a key of a device is none")
    }
    // Above all that a copy of this hub may have given out that is older by a clock.
    let revision = max(known.revision + 1, now.seconds)
    try connection.execute(
      "UPDATE collaborations SET leaves = $1, revision = $2 WHERE zone = $3 AND share = $4",
      [.blob([UInt8(keys.count)] + tree.leaves.flatMap { $0 }), .integer(revision)] + place)
    try tell(place, &connection)
  }

  /// The root of a collaboration as the other hub is told, with the domain of that hub; nil for one that ended.
  static func root(
    of share: WireID, zone: String, _ connection: inout any SQLConnection
  ) throws -> (root: CollaborationRoot, owner: String)? {
    let account = try connection.query("SELECT handle, name FROM accounts WHERE zone = $1", [.text(zone)]).first
    guard let account, let known = try Stored.read([.text(zone), .blob(share.bytes)], &connection),
      let place = WireID(known.place), let tree = IdentityTree(leaves: known.leaves)
    else { return nil }
    let root = CollaborationRoot(
      handle: try account.text(0), name: try account.optionalText(1), share: share, zone: place,
      root: Data(tree.root.hash), size: tree.root.size, revision: known.revision)
    return (root, known.owner)
  }

  /// Notes that the other hub has the root of now.
  static func noteTold(
    _ share: WireID, of zone: String, at now: Timestamp, _ connection: inout any SQLConnection
  ) throws {
    let place: [SQLValue] = [.text(zone), .blob(share.bytes)]
    try connection.execute("DELETE FROM outgoing_roots WHERE zone = $1 AND share = $2", place)
    try connection.execute(
      "UPDATE collaborations SET told = $1 WHERE zone = $2 AND share = $3", [.integer(now.seconds)] + place)
  }

  /// Has the roots told again that were told more than a day ago, since they are good for a week; and forgets shares of
  /// which an inbox has nothing any more.
  func upkeep(of zone: String) async throws {
    let limit = clock.now.seconds - 86_400
    try await database.write { connection in
      let rows = try connection.query(
        "SELECT share, leaves, told FROM collaborations WHERE zone = $1", [.text(zone)])
      for row in rows {
        let place: [SQLValue] = [.text(zone), .blob(try row.blob(0))]
        if try row.integer(2) >= limit { continue }
        let inbox = try connection.query("SELECT COUNT(*) FROM inbox WHERE zone = $1 AND share = $2", place)
        if try inbox.first?.integer(0) ?? 0 == 0 {
          _ = try Self.forget(row.blob(0), of: zone, &connection)
        } else if try !row.blob(1).isEmpty {
          try Self.tell(place, &connection)
        }
      }
    }
  }

  /// The row of a collaboration.
  private struct Stored {
    let owner: String
    let address: String
    let place: String
    /// How many of the leaves are of devices.
    let keys: Int
    /// Empty for a collaboration that ended.
    let leaves: [[UInt8]]
    let revision: Int64
    /// When the other hub was told the root last, in seconds.
    let told: Int64

    static func read(_ key: [SQLValue], _ connection: inout any SQLConnection) throws -> Stored? {
      let rows = try connection.query(
        "SELECT owner, address, place, leaves, revision, told FROM collaborations WHERE zone = $1 AND share = $2", key)
      guard let row = rows.first else { return nil }
      let bytes = try row.blob(3)
      let leaves = stride(from: 1, to: bytes.count, by: hashLength).map {
        Array(bytes[$0..<min(bytes.count, $0 + hashLength)])
      }
      guard bytes.isEmpty || IdentityTree(leaves: leaves) != nil else {
        throw HubStoreError.corrupt("a collaboration has leaves that are none")
      }
      return Stored(
        owner: try row.text(0), address: try row.text(1), place: try row.text(2), keys: Int(bytes.first ?? 0),
        leaves: leaves, revision: try row.integer(4), told: try row.integer(5))
    }
  }
}
