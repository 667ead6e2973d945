import Glibc
import Fuse
import SheafLibrary
import SheafModel

/// Looking names up, making, renaming and removing them.
extension AccountFileSystem {
  func lookup(_ name: FileName, in parent: NodeID, caller: RequestContext, reply: consuming EntryReply) {
    reply.answer { () throws(Errno) in
      if let former = repeater.former(name, in: parent, for: caller) {
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
        return sharedFolder(of: name, caller)
      case .sharedOwner(let owner):
        // A program that took the name away may make it again.
        var entry = try found(absentFor: 0) {
          try library.sharedEntry(account, owner: owner, name.bytes, credentials(caller))
        }
        entry.entryTimeout = sharedTimeout(entry.attributes)
        return entry
      case .formerOwner: return .negative(timeout: 0)
      case .inode(let ino): return try lookup(name, inFolder: ino, caller)
      case .versions(let ino):
        try permit(parent, .execute, caller)
        if let time = Library.pastTime(name.bytes) {
          return try pastFolder(ino, below: ino, at: time, in: parent, caller)
        }
        let folder = try translated { try library.versionFolder(of: ino, name.bytes, credentials(caller)) }
        return Entry(
          node: Node.versionFolder(item: folder.item).id,
          attributes: try translated { try versionFolder(folder.item, time: folder.mtime, credentials(caller)) })
      case .versionFolder(let item): return try lookupVersion(name, item, caller)
      case .pastFolder(let number): return try lookupPast(name, in: parent, number, caller)
      case .versionFile, .pastLink: throw .notDirectory
      case .trash(let folder), .deleted(let folder):
        try permit(parent, .execute, caller)
        return try translated {
          let shown = try library.trashEntry(of: folder, name.bytes, credentials(caller))
          if shown.isForeign { foreignNodes.note(Node.deleted(shown.ino).id) }
          return deletedEntry(shown)
        }
      }
    }
  }

  /// `.` or `..` of any node, which nfsd(8) asks for to export the mount, and open_by_handle_at(2) to open a handle.
  ///
  /// - Throws: ESTALE for a node without a name: the kernel asks only for nodes that it does not hold, so nobody has
  ///   this one open.
  private func relative(_ node: NodeID, isParent: Bool, _ caller: RequestContext) throws(Errno) -> Entry {
    let target = isParent ? try parentNode(of: node, caller) : node
    return try translated {
      if let ino = Node(target).ino {
        let attributes = try library.attributes(ino, credentials(caller))
        guard attributes.nlink > 0 else { throw Errno.staleFileHandle }
        return entry(attributes)
      }
      let (attributes, timeout) = try self.attributes(Node(target), caller)
      if case .pastFolder(let number) = Node(target) { _ = pastFolders.give(try pastFolders[number]) }
      return Entry(node: target, attributes: attributes, attributeTimeout: timeout)
    }
  }

  /// The parent of a folder; the root for `Documents` and `Shared`.
  func parentNode(of node: NodeID, _ caller: RequestContext) throws(Errno) -> NodeID {
    switch Node(node) {
    case .root, .shared: return .root
    case .sharedOwner, .formerOwner: return Node.shared.id
    case .inode(let ino):
      switch try translated({ try library.parent(of: ino, credentials(caller)) }) {
      case .folder(let parent): return Node.inode(parent).id
      case .mount: return .root
      case .shared(let owner): return Node.sharedOwner(owner).id
      }
    case .versions(let ino): return Node.inode(ino).id
    case .versionFolder(let item): return Node.versions(of: try translated { try library.folder(ofItem: item) }).id
    case .pastFolder(let number): return try pastFolders[number].parent
    case .versionFile, .pastLink: throw .notDirectory
    case .trash(let folder): return Node.inode(folder).id
    case .deleted(let ino):
      switch try translated({ try library.trashPlace(of: ino, credentials(caller)) }) {
      case .trash(let folder): return Node.trash(of: folder).id
      case .deletedFolder(let folder): return Node.deleted(folder).id
      }
    }
  }

  static let documentsName = Array("Documents".utf8)
  static let sharedName = Array("Shared".utf8)

  private func lookup(_ name: FileName, inFolder ino: Int64, _ caller: RequestContext) throws(Errno) -> Entry {
    if name.bytes == Library.versionsName {
      let node = Node.versions(of: ino)
      return Entry(node: node.id, attributes: try translated { try attributes(node, caller).0 })
    }
    if name.bytes == Library.trashName, try !translated({ try library.hasOwnTrashName(ino) }) {
      let node = Node.trash(of: ino)
      return Entry(node: node.id, attributes: try translated { try attributes(node, caller).0 })
    }
    let timeout = self.timeout(in: ino)
    return try found(for: timeout, absentFor: timeout) {
      try library.lookup(ino, name.bytes, credentials(caller))
    }
  }

  /// `Shared/OWNER`.
  func sharedFolder(_ owner: Int64) -> Entry {
    let node = Node.sharedOwner(owner)
    return Entry(
      node: node.id, attributes: sharedFolderAttributes(node), entryTimeout: Self.forever,
      attributeTimeout: Self.forever)
  }

  /// `Shared/OWNER` by the owner's handle; for a program that may undo its leaving (``LeftEntry``), also after it is
  /// gone.
  private func sharedFolder(of handle: FileName, _ caller: RequestContext) -> Entry {
    if let owner = library.sharedOwners(account).first(where: { Array($0.handle.description.utf8) == handle.bytes }) {
      return sharedFolder(owner.account)
    }
    guard let owner = library.leftOwner(account, handle.bytes, credentials(caller)) else {
      return .negative(timeout: 0)
    }
    let node = Node.sharedOwner(owner)
    return Entry(node: node.id, attributes: sharedFolderAttributes(node))
  }

  /// Seconds for which the kernel may remember a name in `Shared/OWNER`: what a program that sets a document aside finds
  /// there is not what others find.
  func sharedTimeout(_ attributes: FileAttributes) -> Double {
    attributes.mode & S_IFMT == S_IFDIR ? Self.forever : 0
  }

  /// The entry that `body` finds, or a negative one.
  ///
  /// - Parameters:
  ///   - timeout: seconds for which the kernel may remember the name.
  ///   - absence: seconds for which it may remember the absence.
  private func found(
    for timeout: Double = AccountFileSystem.forever, absentFor absence: Double, _ body: () throws -> Attributes
  ) throws(Errno) -> Entry {
    do {
      return entry(try body(), timeout: timeout)
    } catch let error as SheafError where error.kind == .notFound {
      return .negative(timeout: absence)
    } catch {
      return try translated { throw error }
    }
  }

  private func lookupVersion(_ name: FileName, _ item: Int64, _ caller: RequestContext) throws(Errno) -> Entry {
    guard let number = Int64(String(decoding: name.bytes.prefix { $0 != UInt8(ascii: "~") }, as: UTF8.self)) else {
      throw .noSuchFileOrDirectory
    }
    return try translated {
      let file = try library.versionFile(of: item, number: number, credentials(caller))
      guard file.name == name.bytes else { throw Errno.noSuchFileOrDirectory }
      let node = Node.versionFile(item: item, number: number).id
      let owner = try library.versionOwner(of: item, credentials(caller))
      if file.isForeign { foreignNodes.note(node) }
      return Entry(
        node: node, attributes: self.file(file, owner: owner), attributeTimeout: file.isOpen ? 0 : Self.forever)
    }
  }

  // MARK: - Making

  private func make(
    _ new: Library.NewNode, _ name: FileName, in parent: NodeID, mode: UInt32, _ caller: RequestContext,
    _ reply: consuming EntryReply
  ) {
    let body = { @Sendable [self] () throws -> Entry in
      if let replay = try repeater.serveNames(caller) { return formerEntry(replay.made, caller) }
      if case .sharedOwner(let owner) = Node(parent), case .symbolicLink(let target) = new {
        let link = try library.symlinkShared(account, owner: owner, name.bytes, target: target, credentials(caller))
        return entry(link, timeout: 0)
      }
      let ino = try changeable(parent)
      let made = try library.make(new, ino, name.bytes, mode: mode, credentials(caller))
      return entry(made, timeout: timeout(in: ino))
    }
    answer(parent, reply, body, Self.give)
  }

  private static func give(_ reply: consuming EntryReply, _ result: Result<Entry, Errno>) {
    switch result {
    case .success(let entry): reply.succeed(entry)
    case .failure(let error): reply.fail(error)
    }
  }

  func mknod(
    _ name: FileName, in parent: NodeID, mode: UInt32, device: UInt64, caller: RequestContext,
    reply: consuming EntryReply
  ) {
    let type = mode & S_IFMT
    let new: Library.NewNode = type == S_IFREG || type == 0 ? .file : .special(type: type, rdev: device)
    make(new, name, in: parent, mode: mode, caller, reply)
  }

  func mkdir(
    _ name: FileName, in parent: NodeID, mode: UInt32, caller: RequestContext, reply: consuming EntryReply
  ) {
    make(.folder, name, in: parent, mode: mode, caller, reply)
  }

  func symlink(
    _ name: FileName, in parent: NodeID, target: [UInt8], caller: RequestContext, reply: consuming EntryReply
  ) {
    make(.symbolicLink(target: target), name, in: parent, mode: 0o777, caller, reply)
  }

  func readlink(_ node: NodeID, caller: RequestContext, reply: consuming LinkReply) {
    reply.answer { () throws(Errno) in
      if case .pastLink(let ino) = Node(node) {
        return try translated { try library.pastLink(ino, credentials(caller)).target }
      }
      if case .deleted(let ino) = Node(node) {
        return try translated { try library.readLink(deleted: ino, credentials(caller)) }
      }
      guard let ino = Node(node).ino else { throw .invalidArgument }
      return try translated { try library.readLink(ino, notesAccess: accessTimes.notesLinks, credentials(caller)) }
    }
  }

  func link(
    _ node: NodeID, as newName: FileName, in newParent: NodeID, caller: RequestContext, reply: consuming EntryReply
  ) {
    let body = { @Sendable [self] () throws -> Entry in
      if case .sharedOwner(let owner) = Node(newParent), let ino = Node(node).ino {
        let backup = try library.linkShared(ino, account, owner: owner, newName.bytes, credentials(caller))
        return entry(backup, timeout: 0)
      }
      let folder = try changeable(newParent)
      // A version, or what was deleted, cannot have another name.
      guard let ino = Node(node).ino else { throw Errno.improperLink }
      let linked = try library.link(ino, folder, newName.bytes, credentials(caller))
      return entry(linked, timeout: timeout(in: folder))
    }
    answer(node, reply, body, Self.give)
  }

  // MARK: - Calls of the loopback caller

  /// The entry of a name before the repeated change, for the kernel to keep for no time.
  func formerEntry(_ former: Replay.Former, _ caller: RequestContext) -> Entry {
    let (attributes, present) = formerAttributes(former, caller)
    if let present, present.isForeign { foreignNodes.note(Node.inode(present.ino).id) }
    return Entry(
      node: attributes.node, generation: present.map(generation) ?? former.node.ino.map(generations.number) ?? 0,
      attributes: attributes)
  }

  /// The attributes before the repeated change, and the present ones of an inode that is still there.
  func formerAttributes(
    _ former: Replay.Former, _ caller: RequestContext
  ) -> (shown: FileAttributes, present: Attributes?) {
    guard case .inode(let inode, let lostLinks) = former else { return (sharedFolderAttributes(former.node), nil) }
    guard let present = try? library.attributes(inode.ino, credentials(caller)) else {
      // It is gone, or no longer seen: only its former type is known.
      let mode = inode.mode & S_IFMT | (inode.mode & S_IFMT == S_IFDIR ? 0o700 : 0o600)
      return (FileAttributes(node: former.node.id, mode: mode, uid: getuid(), gid: getgid()), nil)
    }
    var attributes = FileAttributes(present)
    attributes.linkCount += lostLinks
    return (attributes, present)
  }

  /// Attributes with which the kernel lets the loopback caller of a process without privileges change files that can
  /// only be read.
  func forLoopback(_ attributes: FileAttributes) -> FileAttributes {
    var attributes = attributes
    if getuid() != 0 { attributes.mode |= attributes.mode & S_IFMT == S_IFDIR ? 0o700 : 0o600 }
    return attributes
  }

  // MARK: - Removing and renaming

  /// Leaves the share whose entry is removed; returns the entry's inode, nil for anything else.
  private func leave(_ name: FileName, in parent: NodeID, _ caller: RequestContext) throws(Errno) -> Int64? {
    guard case .sharedOwner(let owner) = Node(parent) else { return nil }
    return try translated {
      try library.removeSharedEntry(account, owner: owner, name.bytes, credentials(caller))
    }
  }

  /// - Throws: EPERM for the trash, where nothing is destroyed but by `sheaf purge`.
  private func checkRemoval(from parent: NodeID) throws(Errno) {
    if Node(parent).trashFolder != nil { throw .notPermitted }
  }

  func unlink(_ name: FileName, in parent: NodeID, caller: RequestContext, reply: consuming EmptyReply) {
    reply.answer { () throws(Errno) in
      if try repeater.serveNames(caller) != nil { return }
      if try leave(name, in: parent, caller) != nil { return }
      try checkRemoval(from: parent)
      let ino = try changeable(parent)
      try translated { try library.unlink(ino, name.bytes, credentials(caller)) }
    }
  }

  func rmdir(_ name: FileName, in parent: NodeID, caller: RequestContext, reply: consuming EmptyReply) {
    reply.answer { () throws(Errno) in
      if let replay = try repeater.serveNames(caller) {
        if let ino = replay.made.node.ino { generations.noteDead(ino) }
        return
      }
      if let entry = try leave(name, in: parent, caller) { return generations.noteDead(entry) }
      try checkRemoval(from: parent)
      let ino = try changeable(parent)
      if name.bytes == Library.versionsName { throw .notPermitted }
      if name.bytes == Library.trashName, try !translated({ try library.hasOwnTrashName(ino) }) {
        throw .notPermitted
      }
      generations.noteDead(try translated { try library.rmdir(ino, name.bytes, credentials(caller)) })
    }
  }

  func rename(
    _ name: FileName, in parent: NodeID, to newName: FileName, in newParent: NodeID, flags: RenameFlags,
    caller: RequestContext, reply: consuming EmptyReply
  ) {
    let body = { @Sendable [self] () throws in
      if let replay = try repeater.serveNames(caller) {
        let replaced = replay.view[.init(folder: newParent, name: newName)]
        if !flags.contains(.exchange), case .inode(let folder, _)?? = replaced, folder.mode & S_IFMT == S_IFDIR {
          generations.noteDead(folder.ino)
        }
        return
      }
      guard flags.isSubset(of: [.noReplace, .exchange]), flags != [.noReplace, .exchange] else {
        throw Errno.invalidArgument
      }
      if case .sharedOwner(let owner) = Node(parent) {
        // An entry gets another name for this account alone, and cannot be moved. Of a temporary file programs make a
        // copy; a copy of an entry, and its removal, would leave the share.
        guard parent == newParent, !flags.contains(.exchange) else {
          throw try library.isTemporary(account, owner: owner, name.bytes) ? Errno.improperLink : .notPermitted
        }
        return try library.renameSharedEntry(
          account, owner: owner, name.bytes, to: newName.bytes, flags.contains(.noReplace) ? .noReplace : .replace,
          credentials(caller))
      }
      if let folder = Node(parent).trashFolder {
        // Out of the trash is back into the tree.
        if flags.contains(.exchange) { throw Errno.invalidArgument }
        let to = try changeable(newParent)
        return try library.recover(name.bytes, deletedFrom: folder, to: to, newName.bytes, credentials(caller))
      }
      let from = try changeable(parent)
      let to = try changeable(newParent)
      let mode: Library.RenameMode =
        flags.contains(.noReplace) ? .noReplace : flags.contains(.exchange) ? .exchange : .replace
      let replaced = try library.rename(
        from, name.bytes, to: to, newName.bytes, mode, credentials(caller))
      if let replaced { generations.noteDead(replaced) }
      restrictedFolders.noteMove(from, to)
      changedFolders.noteMove(from, to)
    }
    answer(parent, reply, body, Self.give)
  }
}
