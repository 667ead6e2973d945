import Foundation
import SheafModel
import SheafStore
import SheafWire

/// People whom a hub knows and who have no account in this library, and what they share with accounts of it.
///
/// Rules:
/// 1. A person is known by hub and handle. An account of this library with the same handle is somebody else, unless it
///    is connected to that hub.
/// 2. A share of such a person is in the library once, whoever of its accounts takes part in it: as the `Documents` of
///    an account of its own, which no command names.
///
/// Rooms: `AccountTable`, `Numbers`.
extension Library {
  /// The account of this library that a hub knows by a handle; nil where there is none.
  func connectedAccount(_ handle: AccountHandle, at hub: String) throws -> AccountRow? {
    guard let account = accountTable.present(handle), account.elsewhere == nil,
      let replica = try read({ try $0.replica(account.id) }), replica.reader == nil, replica.hub == hub
    else { return nil }
    return account
  }

  /// The account that stands for somebody whom a hub knows. It is made where it is missing.
  ///
  /// - Throws: `invalid` for what is no handle.
  func account(of text: String, called name: String? = nil, at hub: String) throws -> Int64 {
    let handle = try AccountHandle(text)
    if let account = try connectedAccount(handle, at: hub) { return account.id }
    let shown = name.flatMap { $0.isEmpty || $0.count > 200 || $0.printable != $0 ? nil : $0 }
    if let known = accountTable.person(handle, at: hub) {
      guard let shown, shown != known.name else { return known.id }
      var renamed = known
      renamed.name = shown
      let final = renamed
      try makeChange(.accounts) { change in
        try change.rows.update(final)
        change.whenRecorded { [self] in accountTable.replace(final) }
      }
      return known.id
    }
    return try makeAccount(
      "person", Array("\(hub)\0\(handle)".utf8), name: shown ?? handle.description,
      .init(hub: hub, handle: handle, person: nil))
  }

  /// The account whose `Documents` is a share of somebody elsewhere. It is made where it is missing.
  func account(ofShare share: WireID, by owner: Int64, at hub: String) throws -> Int64 {
    guard let person = accountTable[owner], let elsewhere = person.elsewhere else {
      throw SheafError(.invalid, subject: "share \(share)", reason: "is of this library")
    }
    return try makeAccount(
      "share", Array("\(hub)\0".utf8) + share.bytes, name: person.name,
      .init(hub: hub, handle: elsewhere.handle, person: owner))
  }

  /// The account of a key that no person has, with an empty `Documents`.
  private func makeAccount(
    _ kind: String, _ bytes: [UInt8], name: String, _ elsewhere: AccountRow.Elsewhere
  ) throws -> Int64 {
    let hash = bytes.withUnsafeBytes { SheafStore.ChunkHash(of: $0) }.bytes.prefix(16)
    let digits = Hexadecimal.text(of: hash)
    let key = try AccountHandle("\(digits)@\(kind)")
    if let known = accountTable.named(key) { return known.id }
    let row = AccountRow(
      id: accountTable.nextID, handle: key, name: name, documents: numbers.nextIno(), elsewhere: elsewhere)
    try makeAccount(row, uid: getuid(), gid: getgid())
    return row.id
  }

  /// The account of somebody whose deeds an account has undone: of this library, or a person whom the account's hub
  /// knows.
  func person(_ handle: AccountHandle, for account: Int64) throws -> Int64 {
    if let hub = try read({ try $0.replica(account) })?.hub, let known = accountTable.person(handle, at: hub) {
      return known.id
    }
    return try self.account(handle).id
  }
}
