import Glibc
import Fuse
import SheafLibrary
import SheafModel

/// Looking names up, making, renaming and removing them.
extension AccountFileSystem {
  func lookup(_ name: FileName, in parent: NodeID, caller: Fuse.Caller, reply: consuming EntryReply) {
    reply.answer { () throws(Errno) in
      if let former = repeater.errand(of: caller)?.view[.init(folder: parent, name: name)] {
        return former.map { formerEntry($0, caller) } ?? .negative(timeout: 0)
      }
      if name.isDot || name.isDotDot { return try relative(parent, isParent: name.isDotDot, caller) }
      switch Node(parent) {
      case .root:
        switch name.bytes {
        case Self.documentsName:
          return entry(try translated { try library.attributes(documents, credentials(caller)) })
        case Self.sharedName:
          return Entry(
            node: Node.shared.id, attributes: folder(.shared), entryTimeout: Self.forever,
            attributeTimeout: Self.forever)
        default: return .negative(timeout: Self.forever)
        }
      case .shared:
        let owner = library.sharedOwners(account).first { Array($0.handle.description.utf8) == name.bytes }
        return owner.map { sharedFolder($0.account) } ?? .negative(timeout: Self.forever)
      case .sharedOwner(let owner):
        return try found { try library.sharedEntry(account, owner: owner, name.bytes, credentials(caller)) }
      case .inode(let ino): return try lookup(name, inFolder: ino, caller)
      case .versions(let ino):
        let folder = try translated { try library.versionFolder(of: ino, name.bytes, credentials(caller)) }
        return Entry(
          node: Node.versionFolder(item: folder.item).id,
          attributes: try translated { try versionFolder(folder.item, time: folder.mtime, credentials(caller)) })
      case .versionFolder(let item): return try lookupVersion(name, item, caller)
      case .versionFile: throw .notDirectory
      }
    }
  }

  /// `.` or `..` of any node, which who exports the mount asks for (nfsd(8)).
  private func relative(_ node: NodeID, isParent: Bool, _ caller: Fuse.Caller) throws(Errno) -> Entry {
    let target = isParent ? try parentNode(of: node, caller) : node
    return try translated {
      if let ino = Node(target).ino { return entry(try library.attributes(ino, credentials(caller))) }
      let (attributes, timeout) = try self.attributes(Node(target), caller)
      return Entry(node: target, attributes: attributes, attributeTimeout: timeout)
    }
  }

  /// The folder that a folder is in; the root for what lies in the mount's root.
  func parentNode(of node: NodeID, _ caller: Fuse.Caller) throws(Errno) -> NodeID {
    switch Node(node) {
    case .root, .shared: return .root
    case .sharedOwner: return Node.shared.id
    case .inode(let ino):
      switch try translated({ try library.parent(of: ino, credentials(caller)) }) {
      case .folder(let parent): return Node.inode(parent).id
      case .mount: return .root
      case .shared(let owner): return Node.sharedOwner(owner).id
      }
    case .versions(let ino): return Node.inode(ino).id
    case .versionFolder(let item): return Node.versions(of: try translated { try library.folder(ofItem: item) }).id
    case .versionFile: throw .notDirectory
    }
  }

  static let documentsName = Array("Documents".utf8)
  static let sharedName = Array("Shared".utf8)

  private func lookup(_ name: FileName, inFolder ino: Int64, _ caller: Fuse.Caller) throws(Errno) -> Entry {
    if name.bytes == Library.versionsName {
      let node = Node.versions(of: ino)
      return Entry(node: node.id, attributes: try translated { try attributes(node, caller).0 })
    }
    return try found { try library.lookup(ino, name.bytes, credentials(caller)) }
  }

  /// `Shared/OWNER`.
  func sharedFolder(_ owner: Int64) -> Entry {
    let node = Node.sharedOwner(owner)
    return Entry(
      node: node.id, attributes: sharedFolderAttributes(node), entryTimeout: Self.forever,
      attributeTimeout: Self.forever)
  }

  /// The entry that `body` finds, or one that says that there is none.
  private func found(_ body: () throws -> Attributes) throws(Errno) -> Entry {
    do {
      return entry(try body())
    } catch let error as SheafError where error.kind == .notFound {
      return .negative(timeout: Self.forever)
    } catch {
      return try translated { throw error }
    }
  }

  private func lookupVersion(_ name: FileName, _ item: Int64, _ caller: Fuse.Caller) throws(Errno) -> Entry {
    guard let number = Int64(String(decoding: name.bytes.prefix { $0 != UInt8(ascii: "~") }, as: UTF8.self)) else {
      throw .noSuchFileOrDirectory
    }
    return try translated {
      let file = try library.versionFile(of: item, number: number, credentials(caller))
      guard file.name == name.bytes else { throw Errno.noSuchFileOrDirectory }
      return Entry(
        node: Node.versionFile(item: item, number: number).id,
        attributes: self.file(file, owner: try library.versionOwner(of: item, credentials(caller))),
        attributeTimeout: file.isOpen ? 0 : Self.forever)
    }
  }

  // MARK: - Making

  private func make(
    _ new: Library.NewNode, _ name: FileName, in parent: NodeID, mode: UInt32, _ caller: Fuse.Caller
  ) throws(Errno) -> Entry {
    if let errand = repeater.errand(of: caller) {
      repeater.serve()
      return formerEntry(.init(errand.made, lostLinks: 0), caller)
    }
    let ino = try changeable(parent)
    return entry(try translated { try library.make(new, ino, name.bytes, mode: mode, credentials(caller)) })
  }

  func mknod(
    _ name: FileName, in parent: NodeID, mode: UInt32, device: UInt64, caller: Fuse.Caller, reply: consuming EntryReply
  ) {
    reply.answer { () throws(Errno) in
      let type = mode & S_IFMT
      let new: Library.NewNode = type == S_IFREG || type == 0 ? .file : .special(type: type, rdev: device)
      return try make(new, name, in: parent, mode: mode, caller)
    }
  }

  func mkdir(
    _ name: FileName, in parent: NodeID, mode: UInt32, caller: Fuse.Caller, reply: consuming EntryReply
  ) {
    reply.answer { () throws(Errno) in try make(.folder, name, in: parent, mode: mode, caller) }
  }

  func symlink(
    _ name: FileName, in parent: NodeID, target: [UInt8], caller: Fuse.Caller, reply: consuming EntryReply
  ) {
    reply.answer { () throws(Errno) in
      try make(.symbolicLink(target: target), name, in: parent, mode: 0o777, caller)
    }
  }

  func readlink(_ node: NodeID, caller: Fuse.Caller, reply: consuming LinkReply) {
    reply.answer { () throws(Errno) in
      guard let ino = Node(node).ino else { throw .invalidArgument }
      return try translated { try library.readLink(ino, credentials(caller)) }
    }
  }

  func link(
    _ node: NodeID, as newName: FileName, in newParent: NodeID, caller: Fuse.Caller, reply: consuming EntryReply
  ) {
    reply.answer { () throws(Errno) in
      let folder = try changeable(newParent)
      // A version is no file that could have another name.
      guard let ino = Node(node).ino else { throw .improperLink }
      return entry(try translated { try library.link(ino, folder, newName.bytes, credentials(caller)) })
    }
  }

  // MARK: - Calls of the visitor

  /// Whether the call repeats what was done by another door, which succeeds without effect.
  private func isRepeated(_ caller: Fuse.Caller) -> Bool {
    guard repeater.errand(of: caller) != nil else { return false }
    repeater.serve()
    return true
  }

  /// An inode as it was before the change that is repeated, kept for no time.
  func formerEntry(_ former: Errand.Former, _ caller: Fuse.Caller) -> Entry {
    let attributes = formerAttributes(former, caller)
    if attributes.isForeign { foreignNodes.note(former.inode.ino) }
    return Entry(node: attributes.shown.node, attributes: attributes.shown)
  }

  /// What stat(2) told of an inode before the change that is repeated.
  func formerAttributes(
    _ former: Errand.Former, _ caller: Fuse.Caller
  ) -> (shown: FileAttributes, isForeign: Bool) {
    let inode = former.inode
    guard let present = try? library.attributes(inode.ino, credentials(caller)) else {
      // It is gone, or not seen any more: all that is known of it is what it was.
      let mode = inode.mode & S_IFMT | (inode.mode & S_IFMT == S_IFDIR ? 0o700 : 0o600)
      let node = Node.inode(inode.ino).id
      return (FileAttributes(node: node, mode: mode, uid: getuid(), gid: getgid()), false)
    }
    var attributes = FileAttributes(present)
    attributes.linkCount += former.lostLinks
    return (attributes, present.isForeign)
  }

  /// Attributes that have the kernel let the visitor of a process without privileges change what can only be read there.
  func forVisitor(_ attributes: FileAttributes) -> FileAttributes {
    var attributes = attributes
    if getuid() != 0 { attributes.mode |= attributes.mode & S_IFMT == S_IFDIR ? 0o700 : 0o600 }
    return attributes
  }

  // MARK: - Removing and renaming

  /// Leaves the share whose entry is removed; false for what is none.
  private func leave(_ name: FileName, in parent: NodeID, _ caller: Fuse.Caller) throws(Errno) -> Bool {
    guard case .sharedOwner(let owner) = Node(parent) else { return false }
    try translated { try library.removeSharedEntry(account, owner: owner, name.bytes, credentials(caller)) }
    return true
  }

  func unlink(_ name: FileName, in parent: NodeID, caller: Fuse.Caller, reply: consuming EmptyReply) {
    reply.answer { () throws(Errno) in
      if isRepeated(caller) { return }
      if try leave(name, in: parent, caller) { return }
      let ino = try changeable(parent)
      try translated { try library.unlink(ino, name.bytes, credentials(caller)) }
    }
  }

  func rmdir(_ name: FileName, in parent: NodeID, caller: Fuse.Caller, reply: consuming EmptyReply) {
    reply.answer { () throws(Errno) in
      if isRepeated(caller) { return }
      if try leave(name, in: parent, caller) { return }
      let ino = try changeable(parent)
      if name.bytes == Library.versionsName { throw .notPermitted }
      try translated { try library.rmdir(ino, name.bytes, credentials(caller)) }
    }
  }

  func rename(
    _ name: FileName, in parent: NodeID, to newName: FileName, in newParent: NodeID, flags: RenameFlags,
    caller: Fuse.Caller, reply: consuming EmptyReply
  ) {
    reply.answer { () throws(Errno) in
      if isRepeated(caller) { return }
      guard flags.isSubset(of: [.noReplace, .exchange]), flags != [.noReplace, .exchange] else {
        throw .invalidArgument
      }
      if case .sharedOwner(let owner) = Node(parent) {
        // An entry has another name for this account alone, and goes nowhere else.
        guard parent == newParent, !flags.contains(.exchange) else { throw .notPermitted }
        return try translated {
          try library.renameSharedEntry(account, owner: owner, name.bytes, to: newName.bytes, credentials(caller))
        }
      }
      let from = try changeable(parent)
      let to = try changeable(newParent)
      let mode: Library.RenameMode =
        flags.contains(.noReplace) ? .noReplace : flags.contains(.exchange) ? .exchange : .replace
      try translated { try library.rename(from, name.bytes, to: to, newName.bytes, mode, credentials(caller)) }
    }
  }
}
