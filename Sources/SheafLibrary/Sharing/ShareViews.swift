import Foundation
import SheafModel
import SheafStore

/// Shares as people see them: facts, extended attributes, URLs, paths.
///
/// Rooms: `AccountTable`, `ShareBook`.
extension Library {
  /// A share as one of its participants sees it.
  func facts(_ share: ShareBook.Entry, for account: Int64) throws -> Share {
    guard let inode = try sharedInode(share.row.item) else { throw SheafError(.notFound, subject: share.row.title) }
    return Share(
      id: share.row.uuid.text, url: try url(of: share.row), title: share.row.title, owner: try handle(share.owner),
      path: try mountPath(inode, for: account), public: share.row.anyone, permission: share.row.permission,
      allowInvites: share.row.allowsInvites, allowRequests: share.row.allowsRequests,
      expires: try linkEnd(of: share), summary: summary(of: share, for: account),
      participants: try people(of: share, for: account), warnings: try warnings(of: share))
  }

  /// Why a share's title, or its owner's name or handle, may be taken for others.
  func warnings(of share: ShareBook.Entry) throws -> [String] {
    let owner = try handle(share.owner)
    let texts = [
      Lookalikes.warning(of: share.row.title, called: "the title \"\(share.row.title)\""),
      Lookalikes.warning(of: try name(share.owner), called: "the owner's name \"\(try name(share.owner))\""),
    ]
    let alike = accountTable.all.map(\.handle).filter { Lookalikes.areAlike($0, owner) }
    return texts.compactMap { $0 } + alike.map { "the owner \(owner) is not \($0), though it looks alike" }
  }

  /// The participants that an account may know of: the owner first, then by handle.
  func people(of share: ShareBook.Entry, for account: Int64) throws -> [Participant] {
    let seesAll = seesAll(of: share, account)
    return try share.participants.values.filter {
      $0.acceptance != .removed && (seesAll || $0.role == .owner || $0.account == account)
    }.map { try fact($0) }.sorted {
      ($0.role == .owner ? 0 : 1, $0.handle.description) < ($1.role == .owner ? 0 : 1, $1.handle.description)
    }
  }

  /// Whether an account may know of all who take part.
  func seesAll(of share: ShareBook.Entry, _ account: Int64) -> Bool {
    share.member(account).map { Self.allows(.listEveryone, $0) } ?? false
  }

  func fact(_ participant: ParticipantRow) throws -> Participant {
    Participant(
      handle: try handle(participant.account), name: try name(participant.account), role: participant.role,
      permission: participant.permission, acceptance: participant.acceptance, since: participant.since)
  }

  /// The permissions of a share in a phrase, in which only those count whom an account may know of.
  func summary(of share: ShareBook.Entry, for account: Int64) -> String {
    let invited = share.participants.values.filter {
      $0.acceptance != .removed && ($0.role == .administrator || $0.role == .privateUser)
        && (seesAll(of: share, account) || $0.account == account)
    }
    let text = ShareSummary.text(
      anyone: share.row.anyone, invited: invited.map(\.permission), otherwise: share.row.permission)
    guard share.row.anyone != .none, let end = try? linkEnd(of: share), end <= clock() else { return text }
    return text + ShareSummary.linkHasEnded
  }

  /// The URL of a share.
  func url(of share: ShareRow) throws -> String { try share.url ?? url(share.token) }

  /// The URL of a token of this library.
  func url(_ token: ShareToken) throws -> String {
    token.url(address: try read { try $0.setting("publicAddress") }, library: id)
  }

  /// The attributes `user.sheaf.share.…` of an inode, as `caller` sees them.
  func shareAttributes(_ inode: Inode, _ caller: Caller) throws -> [(name: String, value: String)] {
    guard let share = try share(of: inode) else { return [("share.status", "notShared")] }
    let account = caller.account ?? inode.row.owner
    guard let participant = share.member(account) else { return [("share.status", "notShared")] }
    var depth = 0
    if inode.row.item != share.row.item {
      try ascend(from: inode.row.parent) { folder in
        depth += 1
        return folder.row.item != share.row.item
      }
    }
    let end = try linkEnd(of: share).map { [("share.expires", $0.secondsText)] } ?? []
    return end + [
      ("share.status", participant.role == .owner ? "sharedByMe" : "sharedWithMe"),
      ("share.url", try url(of: share.row)), ("share.title", share.row.title),
      ("share.owner", try handle(share.owner).description), ("share.role", participant.role.rawValue),
      ("share.permission", participant.permission.rawValue), ("share.public", share.row.anyone.rawValue),
      ("share.summary", summary(of: share, for: account)),
      ("share.participants", try people(of: share, for: account).map(\.line).joined(separator: "\n")),
      ("share.root", depth == 0 ? "." : Array(repeating: "..", count: depth).joined(separator: "/")),
    ]
  }

  // MARK: - Paths

  /// Where an inode is in an account's mount.
  func mountPath(_ inode: Inode, for account: Int64) throws -> String {
    try mountPath(inode.row.parent, inode.row.name, for: account, item: inode.row.item)
  }

  /// Where a name in a folder is in an account's mount: `Documents/…`, or `Shared/OWNER/ENTRY/…` of what others share.
  func mountPath(_ parent: Int64, _ name: [UInt8], for account: Int64, item: Int64? = nil) throws -> String {
    let place = try place(parent, name, item: item)
    var (names, rest) = ([Array("Documents".utf8)], place.path)
    if let mark = place.share, let share = shares.active(mark.share), share.owner != person(of: account) {
      let entry = try listing(of: account, owner: share.owner)[share: mark.share]
      names = [Array("Shared".utf8), Array(try handle(share.owner).description.utf8)]
      names.append(try entry?.name ?? sharedInode(mark.share)?.row.name ?? [])
      rest = place.pathInShare
    }
    if !rest.isEmpty { names.append(rest) }
    return String(decoding: Array(names.joined(separator: [UInt8(ascii: "/")])), as: UTF8.self)
  }

  /// As ``mountPath(_:_:for:item:)``, with all of its names whole.
  func mountComponents(
    _ parent: Int64, _ name: [UInt8], for account: Int64, item: Int64?
  ) throws -> [[UInt8]] {
    var components: [[UInt8]] = []
    /// Adds a name; returns whether another one comes before it.
    func add(_ name: [UInt8], _ item: Int64?, isTop: Bool) throws -> Bool {
      if let item, let share = shares.active(item), share.owner != person(of: account) {
        let entry = try listing(of: account, owner: share.owner)[share: item]
        components.append(entry?.name ?? name)
        components.append(Array(try handle(share.owner).description.utf8))
        components.append(Array("Shared".utf8))
        return false
      }
      components.append(isTop ? Array("Documents".utf8) : name)
      return !isTop
    }
    if try add(name, item, isTop: parent == 0) {
      try ascend(from: parent) { try add($0.row.name, $0.row.item, isTop: $0.row.parent == 0) }
    }
    return components.reversed()
  }

  /// Where an account finds a place in its mount, now: the names of the folders on the way, and the place; nil where it
  /// finds it nowhere.
  ///
  /// - Parameter ino: The inode that the place is of: a shared one is found in `Shared/OWNER`.
  package func whereabouts(
    of place: LibraryPlace, _ ino: Int64, for account: Int64
  ) -> (folders: [[UInt8]], place: LibraryPlace)? {
    locked { try? findWhereabouts(of: place, ino, for: account) }
  }

  private func findWhereabouts(
    of place: LibraryPlace, _ ino: Int64, for account: Int64
  ) throws -> (folders: [[UInt8]], place: LibraryPlace)? {
    func shared(_ owner: Int64, _ name: [UInt8]) throws -> (folders: [[UInt8]], place: LibraryPlace) {
      let folders = [Array("Shared".utf8), Array(try handle(owner).description.utf8)]
      return (folders, LibraryPlace(folder: .shared(owner: owner), name: name))
    }
    switch place.folder {
    case .shared(let owner): return try shared(owner, place.name)
    case .inode(0):
      let owner = try inode(ino).row.owner
      if owner == account { return ([], LibraryPlace(folder: .inode(0), name: Array("Documents".utf8))) }
      let sharer = person(of: owner)
      return try entry(of: ino, for: account, owner: sharer).map { try shared(sharer, $0.name) }
    case .inode(let parent):
      let folder = try folder(parent)
      if try folder.row.owner == account || participant(account, in: folder) != nil {
        guard folder.row.nlink > 0 else { return nil }
        let row = folder.row
        return (try mountComponents(row.parent, row.name, for: account, item: row.item), place)
      }
      let owner = person(of: folder.row.owner)
      return try entry(of: ino, for: account, owner: owner).map { try shared(owner, $0.name) }
    }
  }
  /// The entry in `Shared/OWNER` that a shared inode is for an account.
  private func entry(of ino: Int64, for account: Int64, owner: Int64) throws -> SharedEntry? {
    guard let item = try inode(ino).row.item else { return nil }
    return try listing(of: account, owner: owner)[share: item].flatMap { $0.ino == ino ? $0 : nil }
  }
}
