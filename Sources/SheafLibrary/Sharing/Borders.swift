import Foundation
import SheafModel
import SheafStore

/// The borders of shares: which items may lie where, and the effect of a move across a border.
///
/// Rooms: `InodeTable`, `LatestTime`, `ShareBook`.
extension Library {
  // MARK: - Beginning to share

  /// Checks that sharing `inode` makes no share inside another, and that none of its files has a name on the other
  /// side.
  ///
  /// - Throws: `notPermitted` that names the other share or the name.
  func checkBorders(of inode: Inode, _ path: ItemPath) throws {
    try checkNesting(of: inode, path)
    if let outside = try nameAcross(inode) {
      throw linkedOutside("\(path)", at: try mountPath(outside.folder, outside.name, for: inode.row.owner))
    }
  }

  func linkedOutside(_ subject: String, at place: String) -> SheafError {
    SheafError(
      .notPermitted, subject: subject, reason: "has a hard link outside of it: \(place)",
      advice: "remove that name first, or make a copy of it")
  }

  /// Checks that `inode` lies in no share, and that nothing below it is shared on its own.
  ///
  /// - Throws: `notPermitted` that names the other share.
  func checkNesting(of inode: Inode, _ path: ItemPath) throws {
    if inode.row.parent != 0, let around = try share(ofFolder: inode.row.parent) {
      throw SheafError(
        .notPermitted, subject: "\(path)", reason: "lies in the share \"\(around.row.title)\" already",
        advice: "add people to that one, or move it out first")
    }
    if let inside = try sharedBelow(inode) {
      let place = try sharedInode(inside.row.item).map { try mountPath($0, for: inside.owner) } ?? inside.row.title
      throw SheafError(
        .notPermitted, subject: "\(path)", reason: "contains \(place), which is shared on its own",
        advice: "stop that with: sheaf unshare \(place.shellWord)")
    }
  }

  /// A share whose item lies below `folder`; nil where none does.
  private func sharedBelow(_ folder: Inode) throws -> ShareBook.Entry? {
    guard folder.isFolder else { return nil }
    var outside: Set<Int64> = []
    for share in shares.owned(by: folder.row.owner) where share.row.item != folder.row.item {
      guard let root = try sharedInode(share.row.item), root.row.nlink > 0 else { continue }
      var passed: [Int64] = []
      var isBelow = false
      try ascend(from: root.row.parent) { inode in
        isBelow = inode.ino == folder.ino
        if isBelow || outside.contains(inode.ino) { return false }
        passed.append(inode.ino)
        return true
      }
      if isBelow { return share }
      outside.formUnion(passed)
    }
    return nil
  }

  /// A name on the other side of `top`'s border of what has one on this side: of a file that is `top` itself, another
  /// one.
  private func nameAcross(_ top: Inode) throws -> LinkSearch.Name? {
    if top.isRegular {
      guard top.row.nlink > 1, let extra = try read({ try $0.extraEntry(top.ino) }) else { return nil }
      return .init(folder: extra.parent, name: extra.name)
    }
    var search = LinkSearch(below: top.ino)
    return try nameAcross(&search)
  }

  // MARK: - Moving

  /// Checks that `inode` may go from one folder to another, as the borders of shares have it, and ends the open
  /// versions of what is about to enter one.
  ///
  /// - Throws: `notPermitted` where a share would come to lie in another, or a hard link to cross a border.
  func checkMove(of inode: Inode, from folder: Inode, to newFolder: Inode) throws {
    if shares.isEmpty || folder === newFolder { return }
    let (here, there) = (try share(ofFolder: folder.ino), try share(ofFolder: newFolder.ino))
    guard here?.row.item != there?.row.item else { return }
    // An item that comes from a share contains no share.
    if there != nil, here == nil {
      if let item = inode.row.item, shares.active(item) != nil { throw Self.wouldNest }
      if try sharedBelow(inode) != nil { throw Self.wouldNest }
    }
    if inode.isFolder ? try nameAcross(inode) != nil : inode.row.nlink > 1 { throw Self.wouldCross }
    if there != nil { try endVersions(below: inode) }
  }

  /// Checks that what another account owns is kept for as long where it goes as where it was, and that a folder whose
  /// contents are kept for a shorter time than what is around it gets no other name: only its owner lets history go
  /// earlier, and finds it by its name.
  ///
  /// - Throws: `notPermitted`.
  func permitKeeping(of inode: Inode, from folder: Inode, to newFolder: Inode, _ caller: Caller) throws {
    guard inode.isFolder || folder !== newFolder, isForeign(inode, caller) else { return }
    try read { transaction in
      var policy = try RetentionPolicy(transaction)
      let here = try policy.spans(in: folder.ino, transaction)
      if inode.isFolder, case let inside = try policy.spans(in: inode.ino, transaction),
        inside.deleted < here.deleted || inside.versions < here.versions
      {
        throw SheafError(
          .notPermitted, reason: "keeps what is in it for a shorter time, so its owner alone renames and moves it",
          advice: "ask the owner to rename it")
      }
      let there = folder === newFolder ? here : try policy.spans(in: newFolder.ino, transaction)
      guard there.deleted >= here.deleted, there.versions >= here.versions else {
        throw SheafError(
          .notPermitted, reason: "is kept for a shorter time there, which only its owner decides",
          advice: "ask the owner to move it, or copy it")
      }
    }
  }

  /// Checks that a file may get a name in `folder`: hard links never cross a border.
  func checkLink(of inode: Inode, in folder: Inode) throws {
    if shares.isEmpty { return }
    guard try share(of: inode)?.row.item == share(ofFolder: folder.ino)?.row.item else { throw Self.wouldCross }
    // A document that is shared on its own has the one name under which it is.
    if let item = inode.row.item, shares.active(item) != nil { throw Self.wouldCross }
  }

  private static let wouldNest = SheafError(
    .notPermitted, reason: "is shared on its own, and cannot lie in another share",
    advice: "stop sharing it first with: sheaf unshare")

  private static let wouldCross = SheafError(
    .notPermitted, reason: "a hard link would cross the border of a share", advice: "make a copy instead")

  /// Notes that `inode` went from one folder to another: what enters a share is seen from now
  /// on, what stays in one is seen from when it was, and what leaves one is gone for its participants at once.
  ///
  /// - Parameter movesItem: whether its item goes along; where contents alone go, items stay on their names, and none
  ///   enters.
  func noteMove(
    of inode: Inode, movesItem: Bool, from folder: Inode, to newFolder: Inode, _ time: Timestamp,
    _ change: Change
  ) throws {
    if shares.isEmpty { return }
    let (here, there) = (try share(ofFolder: folder.ino), try share(ofFolder: newFolder.ino))
    if here?.row.item == there?.row.item {
      if movesItem, folder !== newFolder { try carryEntry(of: inode, to: newFolder.ino, change) }
    } else {
      if movesItem, there != nil { try stampEntry(of: inode, latestTime.following(time), change) }
      // Members of both shares may have other rights in the new one, and see the history only from now on.
      change.whenRecorded { [self] in
        for member in here?.members ?? [] where member.role != .owner { tellAccess(of: member.account) }
      }
    }
  }

  /// Notes that inodes are in other folders by now. Until their rows say so, what is remembered of folders is of where
  /// they were.
  func noteMoved(_ moved: [Inode]) {
    let folders = moved.filter(\.isFolder)
    for folder in folders { shares.noteMove(ofFolder: folder.ino) }
    if shares.isEmpty { return }
    for inode in folders.isEmpty ? moved : Array(inodes.all) { tellPlace(of: inode) }
  }

  /// Makes kernels read a symbolic link anew that came to lie elsewhere, or elsewhere too: where it leads is checked as
  /// it is read.
  func tellPlace(of inode: Inode) {
    if !shares.isEmpty, inode.row.target != nil { tell(.contents(inode.ino), from: 0) }
  }

  /// Notes that what had lost its name comes back to a place that is shared by now: it enters
  /// that share, if it was not in it before, and its own, if it had one, ends.
  ///
  /// - Parameters:
  ///   - inode: The inode that it was.
  ///   - time: When it lost its name.
  ///   - folder: The folder to which it comes back.
  ///   - entersShare: Whether it was not in the share of that folder when it lost its name.
  func settleReturn(
    of item: inout ItemRow, _ inode: Inode, lostAt time: Timestamp, to folder: Int64, entersShare: Bool = false,
    _ change: Change
  ) throws {
    guard let around = try share(ofFolder: folder) else { return }
    let entry = try entryTime(of: self.inode(folder), in: around)
    let entersNow = entersShare || time < entry
    // It may come back from another folder of the share.
    let former = try share(of: inode)?.row.item == around.row.item ? entryTime(of: inode, in: around) : entry
    let entered = max(item.entered ?? former, former, entersNow ? latestTime.following(clock()) : former)
    if entered > entry, item.entered.map({ $0 < entered }) ?? true {
      item.entered = entered
      try change.rows.update(item)
      if inode.isFolder {
        change.whenRecorded { [self] in
          shares.forgetEntryTimes()
          // So items that come back to it next need not look at the folders above.
          shares.note(entered, ofFolder: inode.ino)
        }
      }
    }
    // Somebody may have gone on with it.
    if entersNow { for draft in inode.drafts { try endVersion(of: draft, inode, change) } }
    if let own = shares.active(item.id) { try stop(own, inode, actor: own.owner, change) }
  }

  // MARK: - Symbolic links

  /// Checks that a symbolic link in a share leads where its reader may be led: one that someone else made, not out of
  /// it. One with so many names that this takes long is refused.
  ///
  /// - Throws: `accessDenied`.
  func checkTarget(of link: Inode, _ caller: Caller) throws {
    guard let share = try share(of: link), let item = try item(of: link),
      item.creator != caller.account ?? link.row.owner, let target = link.row.target
    else { return }
    var rises = 0
    var hasName = false
    for component in target.split(separator: UInt8(ascii: "/")) where component != [UInt8(ascii: ".")] {
      if component == Array("..".utf8)[...] {
        // Behind a name `..` leads who knows where: the name may be another link.
        if hasName { throw Self.leadsOut }
        rises += 1
      } else {
        hasName = true
      }
    }
    if target.first == UInt8(ascii: "/") { throw Self.leadsOut }
    guard rises > 0 else { return }
    // Whichever of its names it is read by, it is the same link.
    var folder: Int64? = link.row.parent
    var lastExtra = Int64.min
    // How many folders of the share are known to lie above each one, itself among them.
    var known: [Int64: Int] = [:]
    var looks = 0
    while let place = folder {
      var (ino, left) = (place, rises)
      while left > known[ino, default: 0] {
        looks += 1
        guard looks <= Self.linkFolderLimit else { throw Self.hasManyNames }
        let row = try inode(ino).row
        if row.item == share.row.item || row.parent == 0 { throw Self.leadsOut }
        known[ino] = left
        (ino, left) = (row.parent, left - 1)
      }
      folder = link.row.nlink > 1 ? try read { try $0.extraFolder(link.ino, after: lastExtra) } : nil
      lastExtra = folder ?? lastExtra
    }
  }

  /// Folders that are looked at, at most, to see where a symbolic link leads.
  private static let linkFolderLimit = 4096

  private static let leadsOut = SheafError(
    .accessDenied, reason: "is a symbolic link that someone else made, and leads out of the share")

  private static let hasManyNames = SheafError(
    .accessDenied, reason: "is a symbolic link that someone else made, in more folders than can be looked at",
    advice: "make a link of your own")
}
