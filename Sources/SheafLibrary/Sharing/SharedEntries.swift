import Foundation
import Glibc
package import SheafModel
import SheafStore
import enum SheafWire.MarkedName

/// An entry of `Shared/OWNER/`.
package struct SharedEntry: Hashable, Sendable {
  package let name: [UInt8]
  /// The shared item.
  let share: Int64
  package let ino: Int64
}

/// `Shared/OWNER/` of an account.
struct SharedFolder: Hashable {
  let account: Int64
  let owner: Int64
}

/// The entries of a ``SharedFolder``.
struct SharedListing {
  let entries: [SharedEntry]
  private let names: [[UInt8]: Int]
  private let shares: [Int64: Int]

  init(_ entries: [SharedEntry]) {
    self.entries = entries
    names = Dictionary(uniqueKeysWithValues: entries.enumerated().map { ($1.name, $0) })
    shares = Dictionary(uniqueKeysWithValues: entries.enumerated().map { ($1.share, $0) })
  }

  subscript(name: [UInt8]) -> SharedEntry? { names[name].map { entries[$0] } }

  subscript(share item: Int64) -> SharedEntry? { shares[item].map { entries[$0] } }
}

/// The names that are taken in a ``SharedFolder``, and those that the others get.
struct SharedNames {
  private var taken: Set<[UInt8]> = []
  /// The next number to be tried for a name.
  private var next: [[UInt8]: Int] = [:]
  /// Names that were tried.
  private(set) var tried = 0

  /// The name of another entry that would have `name`: as it is, or else with the first number that makes it free,
  /// which comes before the extension of what is no folder.
  mutating func take(_ name: [UInt8], isFolder: Bool) -> [UInt8] {
    tried += 1
    if taken.insert(name).inserted { return name }
    // Lower numbers were taken when the last one was given, and nothing becomes free.
    var number = next[name] ?? 2
    while true {
      tried += 1
      let numbered = MarkedName.numbered(name, number, isFolder: isFolder)
      number += 1
      guard taken.insert(numbered).inserted else { continue }
      next[name] = number
      return numbered
    }
  }
}

/// The entries of an account's `Shared/OWNER/`: one for each share that it joined.
///
/// Rooms: `AccountTable`, `Doors`, `ShareBook`, `ShownEntries`, `TemporaryFiles`.
extension Library {
  /// Those who share something with an account: the names of the folders in its `Shared`.
  package func sharedOwners(_ account: Int64) -> [(account: Int64, handle: AccountHandle)] {
    locked {
      let owners = Set(
        shares.owners(sharingWith: account).filter { owner in
          (try? listing(of: account, owner: owner))?.entries.isEmpty == false
        })
      return accountTable.all.filter { owners.contains($0.id) }.map { ($0.id, $0.handle) }
    }
  }

  /// The entries of `Shared/OWNER/`, and the account's temporary files there.
  package func sharedEntries(_ account: Int64, owner: Int64) throws -> [SharedEntry] {
    try locked {
      let entries = try listing(of: account, owner: owner).entries
      return try entries + temporaryEntries(account, owner: owner, but: entries)
    }
  }

  /// The entry of a name in `Shared/OWNER/`, or a temporary file.
  ///
  /// - Throws: `notFound`.
  package func sharedEntry(_ account: Int64, owner: Int64, _ name: [UInt8], _ caller: Caller) throws -> Attributes {
    try locked {
      guard let inode = try shared(account, owner: owner, name, caller) else { throw SheafError(.notFound) }
      return try attributes(inode, caller)
    }
  }

  /// Whether a name in `Shared/OWNER/` is that of a temporary file, and of no entry.
  package func isTemporary(_ account: Int64, owner: Int64, _ name: [UInt8]) throws -> Bool {
    try locked {
      try listing(of: account, owner: owner)[name] == nil
        && temporaryFiles[.init(account: account, owner: owner, name: name)] != nil
    }
  }

  /// The inode that a shared item is; nil once it was purged.
  func sharedInode(_ item: Int64) throws -> Inode? {
    let inode: Inode
    if let ino = shares.root(item), let known = try? self.inode(ino), known.row.item == item {
      inode = known
    } else {
      guard let row = try read({ try $0.inode(item: item) }) else { return nil }
      inode = try self.inode(row.ino)
    }
    shares.noteRoot(item, ino: inode.ino, .init(parent: inode.row.parent, name: inode.row.name))
    return inode
  }

  /// The entries of `Shared/OWNER/`. Names that the account gave come first, then the items' names in the order of
  /// joining; a name that is taken gets ` (2)`.
  func listing(of account: Int64, owner: Int64) throws -> SharedListing {
    let folder = SharedFolder(account: account, owner: owner)
    if let known = shares.listing(folder) { return known }
    let listing = SharedListing(try entries(in: folder))
    shares.note(listing, of: folder)
    return listing
  }

  private func entries(in folder: SharedFolder) throws -> [SharedEntry] {
    let account = folder.account
    var found: [SharedEntry] = []
    var names = SharedNames()
    let joined = shares.joined(by: account, owner: folder.owner).compactMap { share in
      share.participants[account].map { (share: share, participant: $0) }
    }.sorted {
      let left = ($0.participant.name == nil ? 1 : 0, $0.participant.since, $0.share.row.item)
      return left < ($1.participant.name == nil ? 1 : 0, $1.participant.since, $1.share.row.item)
    }
    for (share, participant) in joined {
      guard let inode = try sharedInode(share.row.item), inode.row.nlink > 0 else { continue }
      let own = inode.row.parent == 0 ? Array("Documents".utf8) : inode.row.name
      let name = names.take(participant.name ?? own, isFolder: inode.isFolder)
      found.append(SharedEntry(name: name, share: share.row.item, ino: inode.ino))
    }
    return found
  }

  /// Tells the doors of the accounts whose folders changed which entries came, went or mean another inode.
  func tellSharedEntries() {
    let changed = shares.takeChangedFolders()
    if changed.isEmpty { return }
    let accounts = Set(doors.accounts)
    for folder in changed {
      guard accounts.contains(folder.account) || shownEntries[folder] != nil else { continue }
      let before = shownEntries[folder] ?? []
      let after = (try? listing(of: folder.account, owner: folder.owner).entries) ?? []
      guard before != after else { continue }
      shownEntries[folder] = after
      tellEntries(of: folder, before, after)
      // The kernel forgets everything in entries that are gone.
      if !Set(before.map(\.share)).subtracting(after.map(\.share)).isEmpty { tellAccess(of: folder.account) }
      if before.isEmpty != after.isEmpty, let handle = try? handle(folder.owner) {
        tell(.sharedOwner(.init(account: folder.owner, handle: handle, isThere: !after.isEmpty)), to: folder.account)
      }
    }
  }

  /// Notes the entries that a door finds in its account's `Shared`, so that the library can tell it of changes there.
  func noteSharedEntries(of account: Int64) {
    for owner in shares.owners(sharingWith: account) {
      shownEntries[.init(account: account, owner: owner)] = try? listing(of: account, owner: owner).entries
    }
  }

  private func tellEntries(of folder: SharedFolder, _ before: [SharedEntry], _ after: [SharedEntry]) {
    func named(_ entry: SharedEntry) -> NamedInode {
      let mode = (try? inode(entry.ino))?.row.mode ?? S_IFREG
      return NamedInode(
        ino: entry.ino, mode: mode, place: .init(folder: .shared(owner: folder.owner), name: entry.name))
    }
    func tell(_ change: LibraryChange, _ names: [[UInt8]]) {
      self.tell(change, to: folder.account, from: shownEntries.door(of: folder.account, changing: names))
    }
    let kept = Set(before).intersection(after)
    let (formerNames, names) = (Set(before.map(\.name)), Set(after.map(\.name)))
    let made = after.filter { !kept.contains($0) }
    let madeByInode = Dictionary(made.map { ($0.ino, $0) }) { first, _ in first }
    var renamed: Set<Int64> = []
    for entry in before where !kept.contains(entry) {
      guard let new = madeByInode[entry.ino], !formerNames.contains(new.name), !names.contains(entry.name) else {
        tell(.removed(named(entry)), [entry.name])
        continue
      }
      renamed.insert(entry.ino)
      let place = LibraryPlace(folder: .shared(owner: folder.owner), name: new.name)
      tell(.renamed(named(entry), to: place, replaced: nil, exchanged: false), [entry.name, new.name])
    }
    for entry in made where !renamed.contains(entry.ino) { tell(.made(named(entry)), [entry.name]) }
  }

  // MARK: - Changing entries

  /// Gives an entry a name of the account's own, or renames a temporary file of a program (BesideDocuments.swift).
  ///
  /// - Throws: `notFound`, `exists`, `nameTooLong`; `accessDenied` for a temporary file that would get a lasting name,
  ///   and for the backup of a document that the account may not write.
  package func renameSharedEntry(
    _ account: Int64, owner: Int64, _ name: [UInt8], to newName: [UInt8], _ mode: RenameMode, _ caller: Caller
  ) throws {
    try locked {
      let listing = try listing(of: account, owner: owner)
      let place = TemporaryFiles.Name(account: account, owner: owner, name: name)
      if listing[name] == nil, temporaryFiles[place] != nil {
        try Self.checkLength(newName)
        return try name == newName ? () : renameTemporary(place, to: newName, mode, caller)
      }
      guard let entry = listing[name], var share = shares[entry.share] else {
        throw SheafError(.notFound)
      }
      try Self.checkLength(newName)
      if newName == name { return }
      guard listing[newName] == nil, !Self.isReserved(newName) else {
        throw SheafError(.exists)
      }
      // An editor keeps a backup, and makes the document anew.
      guard FileRole(newName) == .document else {
        _ = try setAside(entry, place, as: newName, hides: true, mode, caller)
        return
      }
      let newPlace = TemporaryFiles.Name(account: account, owner: owner, name: newName)
      if mode == .noReplace, temporaryFiles[newPlace] != nil { throw SheafError(.exists) }
      removeTemporary(newPlace)
      let item = try sharedInode(entry.share)?.row.name
      share.participants[account]?.name = newName == item ? nil : newName
      shownEntries.begin(.init(account: account, door: caller.door, names: [name, newName]))
      try makeChange(.share) { try update(share, $0) }
    }
  }

  /// Leaves the share of an entry, as rmdir(2) and unlink(2) of it do, or removes a temporary file; returns its inode.
  @discardableResult
  package func removeSharedEntry(_ account: Int64, owner: Int64, _ name: [UInt8], _ caller: Caller) throws -> Int64 {
    let place = TemporaryFiles.Name(account: account, owner: owner, name: name)
    let temporary = try locked { () -> Int64? in
      guard try listing(of: account, owner: owner)[name] == nil, let file = temporaryFiles[place] else { return nil }
      removeTemporary(place)
      return file.ino
    }
    if let temporary { return temporary }
    collectMapped(leaving: name, of: account, owner: owner)
    let (ino, back) = try locked {
      guard let entry = try listing(of: account, owner: owner)[name], let share = shares.active(entry.share)
      else { throw SheafError(.notFound) }
      shownEntries.begin(.init(account: account, door: caller.door, names: [name]))
      let isDocument = try inode(entry.ino).isRegular
      return (entry.ino, try leave(share, account, caller, entry: isDocument && caller.process != 0 ? name : nil))
    }
    if let back {
      do {
        try undoDeletions(back)
      } catch {
        // They have left all the same.
        log.error(
          "what was deleted on the way out of a share is not all back; it comes back when the library is opened next",
          metadata: ["error": "\(error)"])
      }
    }
    return ino
  }
}
