import Foundation
package import SheafModel
import SheafStore

/// Accounts, which own the documents.
///
/// Rooms: `AccountTable`, `EventObservers`, `InodeTable`, `Numbers`, `ShareBook`.
extension Library {
  /// The accounts, first made first.
  package func accounts() throws -> [Account] {
    locked { accountTable.present.map { Account(handle: $0.handle, name: $0.name) } }
  }

  /// Makes an account with an empty `Documents`.
  ///
  /// - Parameter name: display name; the handle where nil or empty.
  /// - Throws: `exists`, `invalid` for a name with control characters or over 200 characters, `noSpace`.
  package func addAccount(_ handle: AccountHandle, name: String?) throws -> Account {
    try addAccount(handle, name: name, uid: getuid(), gid: getgid())
  }

  /// As ``addAccount(_:name:)``, for the Linux user who owns its `Documents`.
  package func addAccount(_ handle: AccountHandle, name: String?, uid: UInt32, gid: UInt32) throws -> Account {
    try locked {
      let subject = "account \(handle)"
      guard accountTable.present(handle) == nil else {
        throw SheafError(.exists, subject: subject, reason: "is there already")
      }
      let shown = name.flatMap { $0.isEmpty ? nil : $0 } ?? handle.description
      guard shown.count <= 200, shown.printable == shown else {
        throw SheafError(
          .invalid, subject: subject, reason: "its display name has control characters or is too long",
          advice: "give at most 200 printable characters")
      }
      if let former = accountTable.named(handle) {
        guard former.elsewhere == nil else {
          throw SheafError(.exists, subject: subject, reason: "is taken", advice: "choose another handle")
        }
        return try revive(former, name: shown)
      }
      try makeAccount(
        AccountRow(id: accountTable.nextID, handle: handle, name: shown, documents: numbers.nextIno()), uid: uid,
        gid: gid)
      return Account(handle: handle, name: shown)
    }
  }

  /// Makes an account with an empty `Documents`, which belongs to a Linux user.
  func makeAccount(_ row: AccountRow, uid: UInt32, gid: UInt32) throws {
    let time = clock()
    let item = newItem(.folder, owner: row.id, creator: row.id, time: time)
    var root = InodeRow(
      ino: row.documents, item: item.id, owner: row.id, parent: 0, name: [], mode: S_IFDIR | 0o755, nlink: 2, uid: uid,
      gid: gid, time: time)
    root.size = 0
    try makeChange(.accounts) { change in
      try change.rows.insert(row, created: time)
      try change.rows.insert(item)
      try change.rows.insert(root)
      change.whenRecorded { [self] in accountTable.insert(row) }
    }
  }

  /// Whether an account of this handle is here and owns documents, or deleted ones.
  package func ownsDocuments(_ handle: AccountHandle) throws -> Bool {
    try locked {
      guard let account = accountTable.present.first(where: { $0.handle == handle }) else { return false }
      return try read { try $0.ownsDocuments(account) }
    }
  }

  /// Removes an account that owns nothing any more, from all shares too; history goes on naming it as author.
  ///
  /// - Throws: `notFound`; `busy` while it is connected to a hub; `notEmpty` while it has documents or deleted ones.
  package func removeAccount(_ handle: AccountHandle) throws {
    // What is on its way to another account is still among what the rows of this one own.
    try withoutTransfer { try locked { try removeAccountNow(handle) } }
  }

  private func removeAccountNow(_ handle: AccountHandle) throws {
    let account = try ownAccount(handle)
    guard try read({ try $0.replica(account.id) }) == nil else {
      throw SheafError(
        .busy, subject: "account \(handle)", reason: "is connected to a hub",
        advice: "end that first: sheaf disconnect --as \(handle)")
    }
    guard try !read({ try $0.ownsDocuments(account) }) else {
      throw SheafError(
        .notEmpty, subject: "account \(handle)", reason: "owns documents or deleted documents",
        advice: "give them to somebody first: sheaf transfer; or delete them, and `sheaf purge` what was deleted")
    }
    let root = try inode(account.documents)
    if let item = root.row.item, let share = shares.active(item) {
      try makeChange(.share) { try stop(share, root, actor: account.id, $0) }
    }
    for share in shares.joined(by: account.id) { try leave(share, account.id, .api(account.id)) }
    try endOffers(to: account)
    try makeChange(.share) { try $0.rows.withdrawAccessRequests(of: account.id) }
    if try read({ try $0.isNamed(account) }) { return try retire(account) }
    try makeChange(.accounts, freesSpace: true) { change in
      try detach(root, change)
      if let item = root.row.item {
        try removeShare(of: item, change)
        try change.rows.deleteItem(item)
      }
      try change.rows.deleteWebhooks(of: account.id)
      try change.rows.setWipe(nil, of: account.id)
      try change.rows.deleteReplica(account.id)
      try change.rows.deleteAccount(account.id)
      try change.rows.forgetDefault(account)
      change.whenRecorded { [self] in
        eventObservers.noteWebhooks()
        accountTable.remove(account.id)
        inodes.remove(root.ino)
      }
    }
  }

  /// Keeps the name of a removed account for the history that names it.
  private func retire(_ account: AccountRow) throws {
    var retired = account
    retired.removed = clock()
    let final = retired
    try makeChange(.accounts, freesSpace: true) { change in
      try change.rows.update(final)
      try change.rows.forgetDefault(account)
      try change.rows.deleteReplica(account.id)
      try change.rows.deleteWebhooks(of: account.id)
      for share in shares.all where share.owner != account.id && share.participants[account.id] != nil {
        var share = share
        share.participants[account.id] = nil
        try change.rows.deleteOneTimeLinks(of: share.row.item, by: account.id)
        try update(share, change)
      }
      change.whenRecorded { [self] in
        eventObservers.noteWebhooks()
        shares.forgetGone(by: account.id)
      }
      replace(final, change)
    }
  }

  /// Gives a removed account back, as empty as it was left.
  private func revive(_ former: AccountRow, name: String) throws -> Account {
    var revived = former
    revived.removed = nil
    revived.name = name
    let final = revived
    try makeChange(.accounts) { change in
      try change.rows.update(final)
      replace(final, change)
    }
    return Account(handle: former.handle, name: name)
  }

  private func replace(_ account: AccountRow, _ change: Change) {
    change.whenRecorded { [self] in accountTable.replace(account) }
  }

  /// - Throws: `notFound` that names the handle.
  func account(_ handle: AccountHandle) throws -> AccountRow {
    guard let account = accountTable.present(handle) else {
      throw SheafError(
        .notFound, subject: "account \(handle)", reason: "is not in this library",
        advice: "`sheaf account list` shows those that are")
    }
    return account
  }

  /// An account as whom somebody acts: not one that stands for somebody elsewhere, or for what they share.
  func ownAccount(_ handle: AccountHandle) throws -> AccountRow {
    let account = try account(handle)
    guard account.elsewhere == nil else {
      throw SheafError(.notFound, subject: "account \(handle)", reason: "is not in this library")
    }
    return account
  }

  func handle(_ account: Int64) throws -> AccountHandle {
    guard let row = accountTable[account] else {
      throw SheafError(.corrupt, subject: "account \(account)", reason: "is missing", advice: "run sheaf check")
    }
    return row.handle
  }

  /// The key by which paths name an account.
  func key(_ account: Int64) throws -> AccountHandle {
    guard let row = accountTable[account] else {
      throw SheafError(.corrupt, subject: "account \(account)", reason: "is missing", advice: "run sheaf check")
    }
    return row.key
  }

  /// The person whose items an account's are: of a share of somebody elsewhere its owner, else the account itself.
  func person(of account: Int64) -> Int64 { accountTable[account]?.elsewhere?.person ?? account }

  /// The name by which people see an account.
  func name(_ account: Int64) throws -> String {
    guard let row = accountTable[account] else {
      throw SheafError(.corrupt, subject: "account \(account)", reason: "is missing", advice: "run sheaf check")
    }
    return row.name
  }

  /// The account of a handle as ``Caller/account`` has it.
  ///
  /// - Throws: `notFound` that names the handle.
  package func number(of handle: AccountHandle) throws -> Int64 { try locked { try ownAccount(handle).id } }

  /// The inode of an account's `Documents`.
  package func documents(of handle: AccountHandle) throws -> Int64 {
    try locked {
      let ino = try ownAccount(handle).documents
      guard (try? inode(ino).isFolder) ?? false else {
        throw SheafError(
          .corrupt, subject: location.path, reason: "has no Documents of the account \(handle)",
          advice: "save what can be read into a new library: sheaf repair")
      }
      return ino
    }
  }
}
