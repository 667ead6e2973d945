package import SheafWire

extension DeviceClient {
  /// The devices of the account, the oldest first, and then those that were removed to be wiped.
  package func devices() async throws -> [DeviceFacts] {
    let list: DeviceList = try await fetch("/v1/devices")
    guard list.devices.allSatisfy({ WireID($0.id)?.description == $0.id && $0.name.utf8.count <= Self.longestName })
    else { throw nonsense("lists devices that are none") }
    return list.devices
  }

  /// A link by which another machine becomes a device of the account: good for one machine and a day.
  package func newDeviceLink() async throws -> LinkFacts {
    let facts: LinkFacts = try await fetch(HubRequest("/v1/links", method: .POST))
    guard (try? Enrolment(facts.link)) != nil else { throw nonsense("makes a link that is none") }
    return facts
  }

  /// Makes the account's links for devices useless that nobody has used.
  ///
  /// - Returns: how many there were.
  package func revokeDeviceLinks() async throws -> Int {
    let facts: RevokedLinkFacts = try await fetch(HubRequest("/v1/links", method: .DELETE))
    guard facts.revoked >= 0 else { throw nonsense("revokes fewer links than none") }
    return facts.revoked
  }

  /// Ends a device's access for good, also that of this one.
  ///
  /// - Parameter wipes: Whether it is to destroy what it has of the account.
  package func removeDevice(_ id: WireID, wipes: Bool = false) async throws {
    try await perform(HubRequest("/v1/devices/\(id)\(wipes ? "?wipe=true" : "")", method: .DELETE))
  }
}
