import SheafHubClient
package import SheafModel
import SheafWire

/// What an enrolment link is for, asked of its hub, before anything is made or spent.
package enum LinkPreview {
  /// For a library that is not there yet.
  ///
  /// - Throws: ``SheafError``: `invalid` for what is no link, what the hub refuses, `unavailable` for a hub that cannot
  ///   be reached.
  package static func ask(_ request: ConnectionRequest) async throws -> ConnectionPreview {
    let (account, _, hub) = try await ask(request, file: nil)
    return ConnectionPreview(account: account, hub: hub, hasDocuments: false)
  }

  /// - Parameter file: Where the key of an enrolment that was interrupted may be.
  static func ask(
    _ request: ConnectionRequest, file: DeviceFile?
  ) async throws -> (account: AccountHandle, zone: WireID, hub: String) {
    let enrolment = try Enrolment(request.link)
    guard (1...DeviceClient.longestName).contains(request.device.utf8.count) else {
      throw SheafError(
        .invalid, subject: "--name \(request.device.printable)", reason: "is empty or too long",
        advice: "give 1 to \(DeviceClient.longestName) bytes")
    }
    do {
      let (account, zone) = try await DeviceClient.preview(by: enrolment, name: request.device, file: file)
      return (account, zone, enrolment.hub.description)
    } catch let failure as HubFailure {
      throw failure.sheafError
    }
  }
}
