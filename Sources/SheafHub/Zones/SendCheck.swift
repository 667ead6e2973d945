import Foundation
import SheafWire

/// Refuses requests whose numbers, lengths and texts are out of bounds, before anything is read or written.
enum SendCheck {
  static let attributeLimit = 128
  static let attributeBytes = 65_536
  static let targetBytes = 4_095
  static let placeLimit = 256

  /// - Throws: ``HubError`` of kind `invalid` that says what is wrong.
  static func check(_ request: SendRequest) throws {
    let sends = request.groups.joined()
    guard !sends.isEmpty, sends.count <= WireLimits.sendsPerRequest, !request.groups.contains(where: \.isEmpty) else {
      throw HubError(.invalid, "groups: 1 to \(WireLimits.sendsPerRequest) sends, and no empty group")
    }
    guard request.confirmed >= 0 else { throw HubError(.invalid, "confirmed: not below 0") }
    var last: Int64 = 0
    for send in sends {
      guard send.serial > last else { throw HubError(.invalid, "serial: from 1, and rising") }
      last = send.serial
      try check(send)
    }
  }

  private static func check(_ send: Send) throws {
    guard send.item != .root else { throw HubError(.invalid, "item: the root cannot be sent") }
    guard send.base ?? 0 >= 0, send.read >= 0 else { throw HubError(.invalid, "base, read: not below 0") }
    if let places = send.places { try check(places: places) }
    if let mode = send.mode { try check(mode: mode) }
    if let target = send.target { try check(target: target) }
    if let attributes = send.attributes { try check(attributes: attributes) }
    if let name = send.previousName, name.isEmpty || name.utf8.count > WireLimits.nameBytes {
      throw HubError(.invalid, "previousName: 1 to \(WireLimits.nameBytes) bytes")
    }
    if let version = send.version {
      guard version.contents?.count ?? 0 <= WireLimits.inlineBytes else {
        throw HubError(.tooLarge, "contents: \(WireLimits.inlineBytes) bytes; upload larger ones as chunks")
      }
      guard version.contents == nil || version.extents.isEmpty else {
        throw HubError(.invalid, "version: contents or extents, not both")
      }
      guard version.id != .root, Manifest(version.extents) != nil else {
        throw HubError(
          .invalid,
          "extents: \(Manifest.limit) at most, chunks of 1 to \(WireLimits.chunkBytes) bytes, holes, and \(Manifest.sizeLimit) bytes in all"
        )
      }
    }
    if send.isDeletion, send.places != nil || send.version != nil || send.target != nil || send.attributes != nil {
      throw HubError(.invalid, "isDeletion: a deletion says nothing else")
    }
  }

  // MARK: - What an item has

  /// - Throws: ``HubError`` of kind `invalid`.
  static func check(places: [Place]) throws {
    guard (1...placeLimit).contains(places.count), places.allSatisfy(\.isValid) else {
      throw HubError(.invalid, "places: 1 to \(placeLimit), with names that a file system can have")
    }
    guard !places.contains(where: \.isReserved) else {
      throw HubError(.invalid, "places: no item is called .versions or .deleted")
    }
  }

  /// - Throws: ``HubError`` of kind `invalid`.
  static func check(mode: Int) throws {
    guard (0...0o7777).contains(mode) else { throw HubError(.invalid, "mode: 0 to 4095") }
  }

  /// - Throws: ``HubError`` of kind `invalid`.
  static func check(target: some Collection<UInt8>) throws {
    guard (1...targetBytes).contains(target.count), !target.contains(0) else {
      throw HubError(.invalid, "target: 1 to \(targetBytes) bytes")
    }
  }

  /// - Throws: ``HubError`` of kind `invalid`.
  static func check(attributes: [String: Data]) throws {
    // By bytes: characters that combine with the one before would hide a prefix.
    let isNamed = attributes.keys.allSatisfy {
      $0.utf8.starts(with: "user.".utf8) && (6...255).contains($0.utf8.count) && !$0.utf8.contains(0)
    }
    let bytes = attributes.reduce(0) { $0 + $1.key.utf8.count + $1.value.count }
    guard isNamed, attributes.count <= attributeLimit, bytes <= attributeBytes else {
      throw HubError(.invalid, "attributes: \(attributeLimit) names below user., \(attributeBytes) bytes together")
    }
    guard !attributes.keys.contains(where: { $0.utf8.starts(with: "user.sheaf.".utf8) }) else {
      throw HubError(.invalid, "attributes: those below user.sheaf. are computed, and not sent")
    }
  }
}
