import Foundation
package import SheafModel
import SheafStore

/// chmod, chown, truncate, utimensat, and extended attributes.
extension Library {
  /// What to change; nil leaves as it is.
  package struct AttributeChange: Sendable {
    package enum Time: Sendable {
      case now
      case at(Timestamp)
    }

    package var mode: UInt32?
    package var uid: UInt32?
    package var gid: UInt32?
    package var size: Int64?
    package var atime: Time?
    package var mtime: Time?

    package init(
      mode: UInt32? = nil, uid: UInt32? = nil, gid: UInt32? = nil, size: Int64? = nil, atime: Time? = nil,
      mtime: Time? = nil
    ) {
      self.mode = mode
      self.uid = uid
      self.gid = gid
      self.size = size
      self.atime = atime
      self.mtime = mtime
    }

    /// Whether all is left as it is, but for the set-id bits, which the kernel leaves to the file system.
    var onlyClearsSetID: Bool {
      mode == nil && uid == nil && gid == nil && size == nil && atime == nil && mtime == nil
    }
  }

  /// Changes attributes.
  ///
  /// - Parameter handle: the open file through which, for ftruncate(2).
  /// - Throws: `notPermitted`, `accessDenied`, `isDirectory`, `tooLarge`, `noSpace`.
  package func setAttributes(
    _ ino: Int64, _ change: AttributeChange, handle: UInt64?, _ caller: Caller
  ) throws -> Attributes {
    if let size = change.size {
      collectMapped(size, of: ino, caller)
      if handle == nil { storeSpilled(ino) }
    }
    return try locked {
      let inode = try inode(ino)
      let time = clock()
      let change = try fit(change, to: inode, caller)
      try permitChange(of: inode, change, handle: handle, caller)
      if let size = change.size {
        guard !inode.isFolder else { throw SheafError(.isDirectory) }
        try truncate(inode, to: size, handle: handle, caller)
        let draft = inode.draft(of: caller.account)
        if draft.writerCount == 0 {
          try endAfterClose(inode, draft)
        } else if handle == nil {
          // What returned is safe, even if the kernel has yet to tell of the last close.
          try cut(inode, draft, cause: .save)
        }
      }
      var row = inode.row
      if let mode = change.mode {
        row.mode = row.mode & S_IFMT | mode & 0o7777
        // Nobody gives a program the rights of a group that is not theirs (chmod(2)).
        if caller.uid != 0, mode & 0o2000 != 0, !caller.belongs(to: shownUser(of: inode, caller).gid) {
          row.mode &= ~0o2000
        }
      }
      if let uid = change.uid { row.uid = uid }
      if let gid = change.gid { row.gid = gid }
      // Giving a file away takes its set-id bits, whoever does it (chown(2)).
      if change.mode == nil, !inode.isFolder, change.uid != nil || change.gid != nil {
        row.mode = modeWithoutSetID(inode, changedBy: caller)
      }
      if change.onlyClearsSetID, caller.uid != 0 { row.mode = modeWithoutSetID(inode, changedBy: caller) }
      if let atime = change.atime { row.atime = atime.timestamp(time) }
      if let mtime = change.mtime { row.mtime = mtime.timestamp(time) }
      row.ctime = time
      try updateAttributes(row, of: inode)
      if change.mode != nil { identity.choseMode(ino) }
      if !inode.isOrphan { inode.hasNewAccessTime = false }
      // A truncation is told as a change of contents.
      tell(change.size == nil ? .attributes(ino) : .appearance(ino), from: caller.door)
      return try attributes(inode, caller)
    }
  }

  /// A change as it may be made where another user than the file's own is shown: to that user alone, and without set-id
  /// bits on what another account shares.
  ///
  /// - Throws: `accessDenied` for readers; `notPermitted` for another owner or group.
  private func fit(_ change: AttributeChange, to inode: Inode, _ caller: Caller) throws -> AttributeChange {
    guard isForeign(inode, caller) || caller.user?.ownsAll ?? false else { return change }
    try allow(.write, inode, caller)
    var change = change
    guard change.uid == nil || change.uid == caller.user?.uid, change.gid == nil || change.gid == caller.user?.gid
    else { throw SheafError(.notPermitted) }
    change.uid = nil
    change.gid = nil
    if isForeign(inode, caller) {
      // Whoever changes the mode of others' files saw no set-id bits: folders keep theirs, programs lose them.
      let kept = inode.isFolder ? inode.row.mode & 0o6000 : 0
      change.mode = change.mode.map { $0 & 0o1777 | kept }
    }
    return change
  }

  /// Stores a row that no cut would store, since its contents are as they were.
  func updateAttributes(_ row: InodeRow, of inode: Inode) throws {
    if !inode.isOrphan { try makeChange(.setAttributes) { try $0.rows.update(row, keepsItem: true) } }
    inode.row = row
  }

  /// The rules of chmod(2), chown(2), truncate(2) and utimensat(2).
  private func permitChange(of inode: Inode, _ change: AttributeChange, handle: UInt64?, _ caller: Caller) throws {
    guard caller.uid != 0 else { return }
    let isOwner = caller.uid == shownUser(of: inode, caller).uid
    if let mode = change.mode, !isOwner {
      // The kernel takes set-id bits from a file that someone who may write it writes.
      let lost = inode.row.mode & 0o7777 & ~(mode & 0o7777)
      let gained = mode & 0o7777 & ~inode.row.mode
      guard gained == 0, lost & 0o1777 == 0 else { throw SheafError(.notPermitted) }
    }
    if let uid = change.uid, uid != inode.row.uid { throw SheafError(.notPermitted) }
    if let gid = change.gid, gid != inode.row.gid {
      guard isOwner, caller.belongs(to: gid) else { throw SheafError(.notPermitted) }
    }
    if change.size != nil, handle == nil { try permit(inode, caller, Permission.write) }
    if !isOwner {
      switch (change.atime, change.mtime) {
      case (nil, nil): break
      case (.at, _), (_, .at): if change.size == nil { throw SheafError(.notPermitted) }
      default: if handle == nil { try permit(inode, caller, Permission.write) }
      }
    }
  }

  /// Notes a read as relatime does: at most once a day unless the file changed since (mount(8)).
  func noteAccess(_ inode: Inode) {
    let time = clock()
    let row = inode.row
    guard row.atime <= row.mtime || row.atime <= row.ctime || time.seconds - row.atime.seconds >= 86_400 else { return }
    inode.row.atime = time
    if !inode.isOrphan, accessTimes.insert(inode) { maintenance.wake() }
  }

  /// Access times that are stored at a time, so that nobody waits long.
  private static let accessBatch = 1000

  /// Stores access times that reads left in memory, some of them; returns whether there are more.
  func updateAccessTimes() throws -> Bool {
    let batch = accessTimes.prefix(Self.accessBatch)
    guard !batch.isEmpty else { return false }
    try makeChange(.times, freesSpace: true) { change in
      for inode in batch where inode.hasNewAccessTime && !inode.isOrphan {
        try change.rows.setAccessTime(inode.row.atime, ino: inode.ino)
      }
      change.whenRecorded { [self] in accessTimes.remove(batch) }
    }
    return !accessTimes.isEmpty
  }

  // MARK: - Extended attributes

  /// Bytes of a value at most (xattr(7), XATTR_SIZE_MAX).
  private static let valueLimit = 65_536
  /// Bytes of an inode's names at most, each with its NUL, so that listxattr(2) can give them together with those that are
  /// computed (xattr(7), XATTR_LIST_MAX is 65,536). Who changes what another account owns leaves that one half of it.
  private static let nameLimit = (owner: 61_440, others: 30_720)
  /// Bytes of the values of an inode without a name at most, which are in memory alone.
  private static let orphanLimit = 1 << 20

  private static let userPrefix = Array("user.".utf8)
  private static let computedPrefix = Array("user.sheaf.".utf8)
  private static let idName = Array("user.sheaf.id".utf8)

  static func isUserAttribute(_ name: [UInt8]) -> Bool { name.starts(with: userPrefix) }

  private static func isComputed(_ name: [UInt8]) -> Bool { name.starts(with: computedPrefix) }

  package enum XattrMode: Sendable {
    case set, create, replace
  }

  private static let trustedPrefix = Array("trusted.".utf8)

  /// The rules of xattr(7): `user.` goes by the permission bits, `trusted.` is root's.
  private func permitXattr(_ name: [UInt8], of inode: Inode, _ caller: Caller, writes: Bool) throws {
    // Of what others share, the user's own ones alone can be changed, and setting a computed one changes nothing.
    if isForeign(inode, caller), writes, !Self.isUserAttribute(name) { throw SheafError(.notPermitted) }
    if isForeign(inode, caller), Self.isComputed(name) { return try allow(.read, inode, caller) }
    if Self.isUserAttribute(name) {
      try permit(inode, caller, writes ? Permission.write : Permission.read)
    } else if name.starts(with: Self.trustedPrefix), caller.uid != 0 {
      throw SheafError(writes ? .notPermitted : .noAttribute)
    }
  }

  /// The value of an extended attribute.
  ///
  /// - Throws: `noAttribute`, `accessDenied`.
  package func xattr(_ ino: Int64, _ name: [UInt8], _ caller: Caller) throws -> [UInt8] {
    if Self.isComputed(name) { completeSaves(of: ino) }
    return try locked {
      let inode = try inode(ino)
      try permitXattr(name, of: inode, caller, writes: false)
      if Self.isComputed(name) {
        if name == Self.idName { identity.becomesKnown(ino) }
        guard let value = try computedAttributes(inode, caller).first(where: { $0.name == name })?.value else {
          throw SheafError(.noAttribute)
        }
        return value
      }
      if isForeign(inode, caller), !Self.isUserAttribute(name) { throw SheafError(.noAttribute) }
      guard !inode.hasNoXattrs, let value = try storedXattr(inode, name) else {
        if !inode.hasNoXattrs, try storedXattrNames(inode).isEmpty { inode.hasNoXattrs = true }
        throw SheafError(.noAttribute)
      }
      return value
    }
  }

  /// Names of the extended attributes, computed ones first.
  ///
  /// - Parameter listsComputed: whether those are among them; by name they are there in any case.
  package func xattrNames(_ ino: Int64, listsComputed: Bool, _ caller: Caller) throws -> [[UInt8]] {
    try locked {
      let inode = try inode(ino)
      try allow(.read, inode, caller)
      let isForeign = isForeign(inode, caller)
      return try (listsComputed ? computedAttributes(inode, caller).map(\.name) : [])
        + storedXattrNames(inode).filter { !isForeign || Self.isUserAttribute($0) }
    }
  }

  /// Sets an extended attribute; setting a computed one succeeds and changes nothing.
  ///
  /// - Throws: `exists`, `noAttribute`, `attributeTooLarge`, `accessDenied`, `notPermitted`; `noSpace` also where the inode
  ///   has as many names as it can have.
  package func setXattr(
    _ ino: Int64, _ name: [UInt8], _ value: [UInt8], _ mode: XattrMode, _ caller: Caller
  ) throws {
    try locked {
      let inode = try inode(ino)
      try permitXattr(name, of: inode, caller, writes: true)
      if Self.isComputed(name) { return }
      guard value.count <= Self.valueLimit else { throw SheafError(.attributeTooLarge) }
      let isNew = try inode.hasNoXattrs || storedXattr(inode, name) == nil
      if mode == .create, !isNew { throw SheafError(.exists) }
      if mode == .replace, isNew { throw SheafError(.noAttribute) }
      if isNew { try requireRoom(forName: name, of: inode, caller) }
      if inode.isOrphan { try requireRoom(forValue: value, of: inode, name) }
      try changeXattr(name, of: inode, to: value)
      tell(.attributes(ino), from: caller.door)
    }
  }

  /// Removes an extended attribute; removing a computed one succeeds and changes nothing.
  ///
  /// - Throws: `noAttribute`, `accessDenied`, `notPermitted`.
  package func removeXattr(_ ino: Int64, _ name: [UInt8], _ caller: Caller) throws {
    try locked {
      let inode = try inode(ino)
      try permitXattr(name, of: inode, caller, writes: true)
      if Self.isComputed(name) { return }
      guard try storedXattr(inode, name) != nil else { throw SheafError(.noAttribute) }
      try changeXattr(name, of: inode, to: nil)
      tell(.attributes(ino), from: caller.door)
    }
  }

  /// Takes the capabilities of a program away, whose file is written (capabilities(7)); where the kernel does so, none are left.
  func clearCapability(of inode: Inode, from door: Int) throws {
    guard !inode.hasNoXattrs, try storedXattr(inode, Self.capability) != nil else { return }
    try changeXattr(Self.capability, of: inode, to: nil)
    tell(.attributes(inode.ino), from: door)
  }

  private static let capability = Array("security.capability".utf8)

  /// Takes away what gives a program other rights than those of who runs it, before its file is changed by an account that does
  /// not own it: the kernel, which does so for the owner, is shown no capabilities of what others share.
  func clearPrivileges(of inode: Inode, changedBy account: Int64, from door: Int) throws {
    guard account != inode.row.owner else { return }
    try clearCapability(of: inode, from: door)
    let mode = inode.row.mode
    inode.row.mode = modeWithoutSetID(inode, changedBy: nil)
    if inode.row.mode != mode { tell(.appearance(inode.ino), from: 0) }
  }

  /// - Throws: `noSpace`, as setxattr(2) has it where there is no room for a further name.
  private func requireRoom(forName name: [UInt8], of inode: Inode, _ caller: Caller) throws {
    if inode.hasNoXattrs { return }
    let bytes =
      inode.isOrphan
      ? inode.orphanXattrs.keys.reduce(0) { $0 + $1.count + 1 } : try read { try $0.xattrNameBytes(inode.ino) }
    guard bytes + name.count + 1 <= (isForeign(inode, caller) ? Self.nameLimit.others : Self.nameLimit.owner) else {
      throw SheafError(.noSpace, reason: "has as many extended attributes as it can have")
    }
  }

  /// - Throws: `noSpace`.
  private func requireRoom(forValue value: [UInt8], of inode: Inode, _ name: [UInt8]) throws {
    let others = inode.orphanXattrs.reduce(0) { $0 + ($1.key == name ? 0 : $1.value.count) }
    guard others + value.count <= Self.orphanLimit else { throw SheafError(.noSpace) }
  }

  private func storedXattr(_ inode: Inode, _ name: [UInt8]) throws -> [UInt8]? {
    if inode.isOrphan { return inode.orphanXattrs[name] }
    return try read { try $0.xattr(inode.ino, name) }
  }

  private func storedXattrNames(_ inode: Inode) throws -> [[UInt8]] {
    if inode.isOrphan { return inode.orphanXattrs.keys.sorted { $0.lexicographicallyPrecedes($1) } }
    return try read { try $0.xattrs(inode.ino).map(\.name) }
  }

  /// Sets an attribute, or removes it where `value` is nil.
  private func changeXattr(_ name: [UInt8], of inode: Inode, to value: [UInt8]?) throws {
    let time = clock()
    if inode.isOrphan {
      inode.orphanXattrs[name] = value
      inode.row.ctime = time
      inode.hasNoXattrs = false
      return
    }
    try makeChange(value == nil ? .removeXattr : .setXattr, freesSpace: value == nil) { change in
      if let value {
        try change.rows.setXattr(inode.ino, name, value)
      } else {
        try change.rows.removeXattr(inode.ino, name)
      }
      try change.rows.setChangeTime(time, nlink: inode.row.nlink, ino: inode.ino)
      change.whenRecorded {
        inode.row.ctime = time
        inode.hasNoXattrs = false
      }
    }
  }

  /// The attributes of docs/REFERENCE.md, "Extended attributes", that Sheaf computes for documents and folders.
  private func computedAttributes(
    _ inode: Inode, _ caller: Caller
  ) throws -> [(name: [UInt8], value: [UInt8])] {
    guard inode.isRegular || inode.isFolder, let item = try item(of: inode) else { return [] }
    var values = [("id", item.uuid.text), ("state", inode.isEdited(by: caller.account) ? "edited" : "saved")]
    values += try shareAttributes(inode, caller).map { ($0.name, $0.value) }
    if inode.isRegular {
      values.append(("version", "\(item.version)"))
      if item.version > 0, let version = try read({ try $0.version(item.id, item.version) }),
        let author = accountTable[version.author]
      {
        values.append(("editor", author.handle.description))
      }
      if let conflict = try conflict(of: item, inode, caller) { values.append(("conflict", "\(conflict)")) }
    }
    return values.map { (Array("user.sheaf.\($0.0)".utf8), Array($0.1.utf8)) }
  }
}

extension Library.AttributeChange.Time {
  fileprivate func timestamp(_ now: Timestamp) -> Timestamp {
    switch self {
    case .now: now
    case .at(let time): time
    }
  }
}
