import Foundation
import Glibc
package import SheafModel
import SheafStore

/// An entry of `Shared/OWNER/`.
package struct SharedEntry: Hashable, Sendable {
  package let name: [UInt8]
  /// The shared item.
  let share: Int64
  package let ino: Int64
}

/// What stands in an account's `Shared/OWNER/`: one entry per share that it joined.
extension Library {
  /// Those who share something with an account: the names of the folders in its `Shared`.
  package func sharedOwners(_ account: Int64) -> [(account: Int64, handle: AccountHandle)] {
    locked {
      let owners = Set(
        shares.joined(by: account).filter { (try? sharedInode($0.row.item))?.row.nlink ?? 0 > 0 }.map(\.owner))
      return accountTable.all.filter { owners.contains($0.id) }.map { ($0.id, $0.handle) }
    }
  }

  /// The entries of `Shared/OWNER/`.
  package func sharedEntries(_ account: Int64, owner: Int64) throws -> [SharedEntry] {
    try locked { try entries(of: account, owner: owner) }
  }

  /// The entry of a name in `Shared/OWNER/`.
  ///
  /// - Throws: `notFound`.
  package func sharedEntry(_ account: Int64, owner: Int64, _ name: [UInt8], _ caller: Caller) throws -> Attributes {
    try locked {
      guard let entry = try entries(of: account, owner: owner).first(where: { $0.name == name }) else {
        throw SheafError(.notFound)
      }
      return try attributes(inode(entry.ino), caller)
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

  /// Own names come first, then the items' names in the order of joining; one that is taken gets ` (2)`.
  func entries(of account: Int64, owner: Int64) throws -> [SharedEntry] {
    var found: [SharedEntry] = []
    var taken: Set<[UInt8]> = []
    let joined = shares.joined(by: account).filter { $0.owner == owner }.compactMap { share in
      share.participants[account].map { (share: share, participant: $0) }
    }.sorted {
      let left = ($0.participant.name == nil ? 1 : 0, $0.participant.since, $0.share.row.item)
      return left < ($1.participant.name == nil ? 1 : 0, $1.participant.since, $1.share.row.item)
    }
    for (share, participant) in joined {
      guard let inode = try sharedInode(share.row.item), inode.row.nlink > 0 else { continue }
      let own = inode.row.parent == 0 ? Array("Documents".utf8) : inode.row.name
      var name = participant.name ?? own
      var number = 2
      while !taken.insert(name).inserted {
        name = Self.numbered(participant.name ?? own, number)
        number += 1
      }
      found.append(SharedEntry(name: name, share: share.row.item, ino: inode.ino))
    }
    return found
  }

  /// `name` with ` (2)`, ` (3)` … before its extension.
  static func numbered(_ name: [UInt8], _ number: Int) -> [UInt8] { marked(name, " (\(number))") }

  /// Tells the doors of every account which entries of `Shared` came, went or mean another inode.
  func tellSharedEntries() {
    let joined = Set(doors.accounts).flatMap { account in
      shares.joined(by: account).map { ShownEntries.Pair(account: account, owner: $0.owner) }
    }
    for pair in shownEntries.pairs.union(joined) {
      let before = shownEntries[pair] ?? []
      let after = (try? entries(of: pair.account, owner: pair.owner)) ?? []
      guard before != after else { continue }
      shownEntries[pair] = after
      tellEntries(of: pair, before, after)
      // What is gone is gone from the kernel too, wherever in it.
      if !Set(before.map(\.share)).subtracting(after.map(\.share)).isEmpty { tellAccess(of: pair.account) }
      if before.isEmpty != after.isEmpty, let handle = try? handle(pair.owner) {
        tell(.sharedOwner(.init(account: pair.owner, handle: handle, isThere: !after.isEmpty)), to: pair.account)
      }
    }
  }

  /// Notes what a door finds in its account's `Shared`, so that it is told what changes there.
  func noteSharedEntries(of account: Int64) {
    for owner in Set(shares.joined(by: account).map(\.owner)) {
      shownEntries[.init(account: account, owner: owner)] = try? entries(of: account, owner: owner)
    }
  }

  private func tellEntries(of pair: ShownEntries.Pair, _ before: [SharedEntry], _ after: [SharedEntry]) {
    func named(_ entry: SharedEntry) -> NamedInode {
      let mode = (try? inode(entry.ino))?.row.mode ?? S_IFREG
      return NamedInode(
        ino: entry.ino, mode: mode, place: .init(folder: .shared(owner: pair.owner), name: entry.name))
    }
    func tell(_ change: LibraryChange, _ names: [[UInt8]]) {
      self.tell(change, to: pair.account, from: shownEntries.door(of: pair.account, changing: names))
    }
    var made = after.filter { !before.contains($0) }
    for entry in before where !after.contains(entry) {
      let index = made.firstIndex { new in
        new.ino == entry.ino && !before.contains { $0.name == new.name } && !after.contains { $0.name == entry.name }
      }
      guard let index else {
        tell(.removed(named(entry)), [entry.name])
        continue
      }
      let new = made.remove(at: index)
      let place = LibraryPlace(folder: .shared(owner: pair.owner), name: new.name)
      tell(.renamed(named(entry), to: place, replaced: nil, exchanged: false), [entry.name, new.name])
    }
    for entry in made { tell(.made(named(entry)), [entry.name]) }
  }

  // MARK: - Changing entries

  /// Gives an entry a name of the account's own.
  ///
  /// - Throws: `notFound`, `exists`, `nameTooLong`.
  package func renameSharedEntry(
    _ account: Int64, owner: Int64, _ name: [UInt8], to newName: [UInt8], _ caller: Caller
  ) throws {
    try locked {
      let entries = try entries(of: account, owner: owner)
      guard let entry = entries.first(where: { $0.name == name }), var share = shares[entry.share] else {
        throw SheafError(.notFound)
      }
      try Self.checkLength(newName)
      if newName == name { return }
      // An editor that sets a backup aside could not make the name again here; refused, it writes in place.
      guard FileRole(newName) == .document else { throw SheafError(.accessDenied) }
      guard !entries.contains(where: { $0.name == newName }), newName != Self.versionsName else {
        throw SheafError(.exists)
      }
      let item = try sharedInode(entry.share)?.row.name
      share.participants[account]?.name = newName == item ? nil : newName
      shownEntries.begin(.init(account: account, door: caller.door, names: [name, newName]))
      try makeChange(.share) { try update(share, $0) }
    }
  }

  /// Leaves the share of an entry, as rmdir(2) and unlink(2) of it do; returns its inode.
  @discardableResult
  package func removeSharedEntry(_ account: Int64, owner: Int64, _ name: [UInt8], _ caller: Caller) throws -> Int64 {
    let (ino, back) = try locked {
      guard let entry = try entries(of: account, owner: owner).first(where: { $0.name == name }),
        let share = shares.active(entry.share)
      else { throw SheafError(.notFound) }
      shownEntries.begin(.init(account: account, door: caller.door, names: [name]))
      let isDocument = try inode(entry.ino).isRegular
      return (entry.ino, try leave(share, account, caller, entry: isDocument && caller.process != 0 ? name : nil))
    }
    if let back {
      do {
        try bringBack(back)
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
