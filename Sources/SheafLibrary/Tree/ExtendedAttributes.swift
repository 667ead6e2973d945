import Foundation
import SheafModel
import SheafStore

/// Extended attributes: those that programs set, and those that Sheaf computes.
///
/// Rooms: `AccountTable`, `Identity`.
extension Library {
  /// Bytes of a value at most (xattr(7), XATTR_SIZE_MAX).
  private static let valueLimit = 65_536
  /// The most bytes of an inode's names, each with its NUL, so that listxattr(2) can return them together with the
  /// computed ones (xattr(7), XATTR_LIST_MAX is 65,536). On another account's items, a caller may use half of it.
  private static let nameLimit = (owner: 61_440, others: 30_720)
  /// The most bytes of an inode's names and values: replacing or removing a file has to move or to erase them all.
  private static let spaceLimit = (owner: 1 << 20, others: 1 << 19)

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
    return try locked { try xattr(of: inode(ino), name, caller) }
  }

  /// - Throws: as ``xattr(_:_:_:)``.
  func xattr(of inode: Inode, _ name: [UInt8], _ caller: Caller) throws -> [UInt8] {
    try permitXattr(name, of: inode, caller, writes: false)
    if Self.isComputed(name) {
      if name == Self.idName { identity.becomesKnown(inode.ino) }
      guard let value = try computedAttributes(inode, caller).first(where: { $0.name == name })?.value else {
        throw SheafError(.noAttribute)
      }
      return value
    }
    if isForeign(inode, caller), !Self.isUserAttribute(name) { throw SheafError(.noAttribute) }
    guard let value = try storedXattr(inode, name) else { throw SheafError(.noAttribute) }
    return value
  }

  /// Names of the extended attributes, computed ones first.
  ///
  /// - Parameter listsComputed: whether those are among them; by name they are there in any case.
  package func xattrNames(_ ino: Int64, listsComputed: Bool, _ caller: Caller) throws -> [[UInt8]] {
    try locked { try xattrNames(of: inode(ino), listsComputed: listsComputed, caller) }
  }

  /// - Throws: `accessDenied`.
  func xattrNames(of inode: Inode, listsComputed: Bool, _ caller: Caller) throws -> [[UInt8]] {
    try allow(.read, inode, caller)
    let isForeign = isForeign(inode, caller)
    return try (listsComputed ? computedAttributes(inode, caller).map(\.name) : [])
      + storedXattrNames(inode).filter { !isForeign || Self.isUserAttribute($0) }
  }

  /// Sets an extended attribute; setting a computed one succeeds and changes nothing.
  ///
  /// - Throws: `exists`, `noAttribute`, `attributeTooLarge`, `accessDenied`, `notPermitted`; `noSpace` also where the
  ///   inode has as many attributes as it can have.
  package func setXattr(
    _ ino: Int64, _ name: [UInt8], _ value: [UInt8], _ mode: XattrMode, _ caller: Caller
  ) throws {
    try locked {
      let inode = try inode(ino)
      try permitXattr(name, of: inode, caller, writes: true)
      if Self.isComputed(name) { return }
      guard value.count <= Self.valueLimit else { throw SheafError(.attributeTooLarge) }
      let former = try storedXattr(inode, name)
      if mode == .create, former != nil { throw SheafError(.exists) }
      if mode == .replace, former == nil { throw SheafError(.noAttribute) }
      try changeXattr(name, of: inode, from: former, to: value, by: caller)
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
      guard let former = try storedXattr(inode, name) else { throw SheafError(.noAttribute) }
      try changeXattr(name, of: inode, from: former, to: nil, by: caller)
      tell(.attributes(ino), from: caller.door)
    }
  }

  /// Takes the capabilities of a program away, whose file is written (capabilities(7)); where the kernel does so, none
  /// are left.
  func clearCapability(of inode: Inode, from door: Int) throws {
    guard let former = try storedXattr(inode, Self.capability) else { return }
    try changeXattr(Self.capability, of: inode, from: former, to: nil, by: .library)
    tell(.attributes(inode.ino), from: door)
  }

  private static let capability = StoreTransaction.capability

  /// Takes away what gives a program other rights than those of who runs it, before its file is changed by an account
  /// that does not own it: the kernel, which does so for the owner, is shown no capabilities of what others share.
  ///
  /// - Parameter account: Nil for a command, which may be of any Linux user.
  func clearPrivileges(of inode: Inode, changedBy account: Int64?, from door: Int) throws {
    guard account != inode.row.owner else { return }
    try clearCapability(of: inode, from: door)
    let mode = inode.row.mode
    inode.row.mode = modeWithoutSetID(inode, changedBy: nil)
    if inode.row.mode != mode { tell(.appearance(inode.ino), from: 0) }
  }

  private func storedXattr(_ inode: Inode, _ name: [UInt8]) throws -> [UInt8]? {
    if inode.isOrphan { return inode.orphanXattrs[name] }
    // The kernel asks for one before every write.
    return try xattrSpace(of: inode).count == 0 ? nil : read { try $0.xattr(inode.ino, name) }
  }

  private func storedXattrNames(_ inode: Inode) throws -> [[UInt8]] {
    if inode.isOrphan { return inode.orphanXattrs.keys.sorted { $0.lexicographicallyPrecedes($1) } }
    return try xattrSpace(of: inode).count == 0 ? [] : read { try $0.xattrNames(inode.ino) }
  }

  /// The room that the attributes of an inode take, counted once.
  private func xattrSpace(of inode: Inode) throws -> XattrSpace {
    if let known = inode.xattrSpace { return known }
    let space = try read { try $0.xattrSpace(inode.ino) }
    inode.xattrSpace = space
    return space
  }

  /// Sets an attribute, or removes it where `value` is nil.
  ///
  /// - Throws: `noSpace`, as setxattr(2) has it where there is no room for more.
  private func changeXattr(
    _ name: [UInt8], of inode: Inode, from former: [UInt8]?, to value: [UInt8]?, by caller: Caller
  ) throws {
    let time = clock()
    let before = try xattrSpace(of: inode)
    var space = before
    if let former { space.remove(name, valueBytes: former.count) }
    if let value { space.add(name, valueBytes: value.count) }
    guard Self.hasRoom(for: space, instead: before, isOwn: !isForeign(inode, caller)) else {
      throw SheafError(.noSpace, reason: "has as many extended attributes as it can have")
    }
    if inode.isOrphan {
      inode.orphanXattrs[name] = value
      inode.row.ctime = time
      inode.xattrSpace = space
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
        inode.xattrSpace = space
      }
    }
  }

  /// Whether an inode may have attributes that take `space`. Those of an older library may take more than is allowed:
  /// then they may take no more than `former`.
  private static func hasRoom(for space: XattrSpace, instead former: XattrSpace, isOwn: Bool) -> Bool {
    space.nameBytes <= max(former.nameBytes, isOwn ? nameLimit.owner : nameLimit.others)
      && space.bytes <= max(former.bytes, isOwn ? spaceLimit.owner : spaceLimit.others)
  }

  // MARK: - When files change places

  /// Gives an inode the attributes of another one that it lacks, in the order of their names, as long as there is room.
  /// Nobody reads their values.
  ///
  /// - Parameters:
  ///   - target: the inode that gets them, which has none if it `isNew`.
  ///   - isCarried: which they are, by their names.
  /// - Returns: whether there were any.
  @discardableResult
  func carryXattrs(
    from source: Inode, to target: Int64, isNew: Bool = false, _ change: Change,
    where isCarried: ([UInt8]) -> Bool = Library.isUserAttribute
  ) throws -> Bool {
    if source.hasNoXattrs { return false }
    let sizes = try change.rows.xattrSizes(source.ino)
    let present = sizes.isEmpty || isNew ? [] : try change.rows.xattrSizes(target)
    let names = Set(present.map(\.name))
    func space(_ sizes: [(name: [UInt8], valueBytes: Int)]) -> XattrSpace {
      sizes.reduce(into: XattrSpace()) { $0.add($1.name, valueBytes: $1.valueBytes) }
    }
    let former = space(sizes)
    var total = space(present)
    let carried = sizes.filter { isCarried($0.name) && !names.contains($0.name) }.prefix { size in
      total.add(size.name, valueBytes: size.valueBytes)
      return Self.hasRoom(for: total, instead: former, isOwn: true)
    }
    try change.rows.copyXattrs(carried.map(\.name), from: source.ino, to: target)
    return !carried.isEmpty
  }

  /// Removes the rows of the attributes of an inode that is about to lose its own; returns those that stay in memory,
  /// for who has it open, as many as an inode may have.
  func detachXattrs(of inode: Inode, _ change: Change) throws -> [(name: [UInt8], value: [UInt8])] {
    if inode.hasNoXattrs { return [] }
    let sizes = try change.rows.xattrSizes(inode.ino)
    var space = XattrSpace()
    let kept = sizes.prefix { size in
      space.add(size.name, valueBytes: size.valueBytes)
      return inode.openCount > 0 && Self.hasRoom(for: space, instead: XattrSpace(), isOwn: true)
    }
    let values = try kept.last.map { try change.rows.xattrs(inode.ino, through: $0.name) } ?? []
    try change.rows.removeXattrs(sizes.map(\.name), of: inode.ino)
    return values
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
    values += try replicaAttributes(of: inode, item).map { ($0.name, $0.value) }
    return values.map { (Array("user.sheaf.\($0.0)".utf8), Array($0.1.utf8)) }
  }
}
